//! The subject: does one operation after the other, and stops in between for its tracer.
//!
//! `percid-subject BOARD` maps the board from the file descriptor of that number. Its main thread
//! is the worker, the only one that is traced; a second thread is the accomplice.

#[cfg(target_arch = "x86_64")]
mod accomplice;
#[cfg(target_arch = "x86_64")]
mod cells;
#[cfg(target_arch = "x86_64")]
mod counters;
#[cfg(target_arch = "x86_64")]
mod findings;
mod floats;
#[cfg(target_arch = "x86_64")]
mod handler;
#[cfg(target_arch = "x86_64")]
mod histograms;
#[cfg(target_arch = "x86_64")]
mod ledger;
#[cfg(target_arch = "x86_64")]
mod lists;
#[cfg(target_arch = "x86_64")]
mod locals;
#[cfg(target_arch = "x86_64")]
mod masks;
#[cfg(target_arch = "x86_64")]
mod rings;
#[cfg(target_arch = "x86_64")]
mod stacks;
#[cfg(target_arch = "x86_64")]
mod structure;
mod tallies;
#[cfg(target_arch = "x86_64")]
mod words;
mod worker;

use std::process::ExitCode;

#[cfg(target_arch = "x86_64")]
fn main() -> ExitCode {
    let file = std::env::args().nth(1).and_then(|number| number.parse().ok());
    match file.and_then(percid_subject::board::Board::map) {
        Some(board) => worker::work(board),
        None => {
            eprintln!("percid-subject: expected a file descriptor's number; percid-aborts runs it");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn main() -> ExitCode {
    eprintln!("percid-subject: only for x86-64");
    ExitCode::from(2)
}
