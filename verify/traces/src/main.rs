//! Programs that record the kernel they run on with `percid-trace`, and check the recordings.
//!
//! `percid-trace-programs NAME` runs one; it prints one summary line, `PASS NAME: figures` or `FAIL
//! NAME: what is wrong`, and exits with 0 or 1 (2 for wrong arguments). The programs need root, and
//! are intended for the machines of `verify/vm`; `percid-trace-programs --list` prints their list.
//! The recorded program is this one, started again.

mod cpus;
mod facts;
mod heartbeat;
mod kernel_ids;
mod numa_scan;
mod offline_cpus;
mod recorded_schedule;
mod recording;
mod replays;
mod verdict;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

use verdict::Verdict;

/// One of the programs.
struct Program {
    name: &'static str,
    run: fn() -> Verdict,
    purpose: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "kernel-ids",
        run: kernel_ids::run,
        purpose: "recorded IDs are those of the kernel's policy",
    },
    Program {
        name: "recorded-schedule",
        run: recorded_schedule::run,
        purpose: "what both backends record is what the threads did",
    },
    Program {
        name: "numa-scan",
        run: numa_scan::run,
        purpose: "the recorded walk of the NUMA scan is that of the kernel's rules",
    },
    Program {
        name: "offline-cpus",
        run: offline_cpus::run,
        purpose: "CPUs keep their numbers where one is missing (changes the machine)",
    },
];

/// Seconds for each program: recordings are repeated, and an emulated machine is slow.
const LIMIT: u32 = 180;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().unwrap_or_default();
    match name.to_str() {
        Some("--list") => {
            PROGRAMS.iter().for_each(|Program { name, purpose, .. }| {
                println!("limit={LIMIT} {name} # {purpose}");
            });
            ExitCode::SUCCESS
        }
        Some(workload::CHILD) => ExitCode::SUCCESS,
        Some(numa_scan::workload::NAME) => match numa_scan::workload::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(wrong) => exit(numa_scan::workload::NAME, Err(wrong)),
        },
        Some(workload::NAME) => match workload::run(arguments.next()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(wrong) => exit(workload::NAME, Err(wrong)),
        },
        _ => match PROGRAMS.iter().find(|program| name == program.name) {
            Some(program) => exit(program.name, (program.run)()),
            None => usage(&name),
        },
    }
}

fn exit(name: &str, verdict: Verdict) -> ExitCode {
    match verdict {
        Ok(figures) => {
            println!("PASS {name}: {figures}");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            println!("FAIL {name}: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn usage(name: &OsString) -> ExitCode {
    eprintln!("percid-trace-programs: no program {name:?}; there are:");
    PROGRAMS.iter().for_each(|Program { name, purpose, .. }| eprintln!("  {name:18} {purpose}"));
    ExitCode::from(2)
}
