//! The guest's first process.
//!
//! Mounts the file systems that test programs need, runs the jobs it finds in the initramfs one
//! after the other, reports on the second serial port and ends the machine. It undoes the changes
//! that programs leave behind - processes, control groups, CPUs brought up or down - so that the
//! order of programs does not matter.
//!
//! If it cannot continue it panics. The kernel then panics too, having lost its first process, and
//! the host detects that.

mod cgroups;
mod children;
mod cpus;
mod mounts;
mod port;

use std::fs;
use std::time::Instant;

use percid_vm::power::end_machine;
use percid_vm::protocol::{EXIT_VALUE, JOBS_PATH, Job, Line, Machine, Tally, read_jobs};

use crate::port::Port;

fn main() {
    assert_eq!(std::process::id(), 1, "only the first process of a machine");
    let notes = mounts::mount_all();
    let mut port = Port::open().expect("the second serial port opens");
    port.say(&Line::Machine(machine()));
    for note in notes {
        port.say(&Line::Note(note));
    }
    for note in cgroups::enable_controllers() {
        port.say(&Line::Note(note));
    }
    let tally = run_all(&jobs(), &mut port);
    port.say(&Line::Summary(tally));
    port.drain();
    panic!("{}", end_machine(EXIT_VALUE));
}

fn jobs() -> Vec<Job> {
    let text = fs::read_to_string(JOBS_PATH).expect("the initramfs holds the list of jobs");
    read_jobs(&text).expect("the list of jobs has the agreed form")
}

fn machine() -> Machine {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Machine {
        release: release.trim().to_owned(),
        online: cpus::online().len() as u32,
        possible: cpus::possible().len() as u32,
        nodes: cpus::nodes().len() as u32,
        ms: uptime_ms(),
    }
}

fn uptime_ms() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    (seconds.unwrap_or(0.0) * 1000.0) as u64
}

fn run_all(jobs: &[Job], port: &mut Port) -> Tally {
    let mut tally = Tally::default();
    let online = cpus::online();
    for job in jobs {
        port.say(&Line::Begin(job.label()));
        let started = Instant::now();
        let ending = children::run(job, port);
        port.say(&Line::End {
            label: job.label(),
            ending,
            ms: started.elapsed().as_millis() as u64,
        });
        tally.count(ending);
        tidy(job, &online, port);
    }
    tally
}

/// Puts back what the program left behind.
fn tidy(job: &Job, online: &[u32], port: &mut Port) {
    // Processes first: they keep control groups busy.
    children::sweep();
    cgroups::remove_all();
    for remark in cpus::restore(online) {
        port.say(&Line::Note(format!("`{}` {remark}", job.label())));
    }
}
