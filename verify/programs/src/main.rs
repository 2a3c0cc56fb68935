//! Whole programs that put percid under stress.
//!
//! `percid-programs NAME [--option value …]` runs one; it prints one summary line, `PASS NAME: figures` or
//! `FAIL NAME: what went wrong`, and exits with 0 or 1 (2 for wrong arguments). Each is a process of its
//! own because what it checks (threads, affinity, signals, fork, the environment) belongs to a process.

mod count;
mod density;
mod first_use;
mod forking;
mod handlers;
mod memory;
mod options;
mod pinning;
mod random;
mod sandbox;
mod stress;

use std::process::ExitCode;

use options::Options;

/// What a program found: figures if all is well, else what is wrong.
type Verdict = Result<String, String>;

/// The programs by name, with what they check.
const PROGRAMS: [(&str, fn(&Options) -> Verdict, &str); 7] = [
    (
        "count",
        count::run,
        "counts to a million and says with which source, optionally in a sandbox",
    ),
    ("density", density::run, "threads that wander over all CPUs use no more IDs than threads"),
    ("first-use", first_use::run, "signals during the first use of the library"),
    ("forking", forking::run, "children start fresh and lose nothing"),
    ("handlers", handlers::run, "signal handlers that interrupt operations and slow paths"),
    ("memory", memory::run, "what ten thousand counters cost"),
    ("stress", stress::run, "no increment is lost or counted twice"),
];

fn main() -> ExitCode {
    let (name, options) = match options::read() {
        Ok(read) => read,
        Err(error) => return usage(&error),
    };
    let Some((name, program, _)) = PROGRAMS.iter().find(|program| program.0 == name) else {
        return usage(&format!("no program {name:?}"));
    };
    match program(&options) {
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

fn usage(error: &str) -> ExitCode {
    eprintln!("percid-programs: {error}\nprograms:");
    for (name, _, purpose) in PROGRAMS {
        eprintln!("  {name:10} {purpose}");
    }
    eprintln!("options: {}", options::HELP);
    ExitCode::from(2)
}
