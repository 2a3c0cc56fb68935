//! Brings the recording out of the machine, for the fixtures of `percid-trace`: all that is printed
//! goes to the report.
//!
//! `file HEX…` are the bytes of the trace as Parquet, `text …` the lines of the kernel's own file
//! `trace` of the same events, `format …` the kernel's descriptions of them.

use std::fs;
use std::io;

use percid_trace::{Trace, parquet};

const TRACING: &str = "/sys/kernel/tracing";

const EVENTS: [&str; 6] = [
    "sched/sched_skip_vma_numa",
    "sched/sched_move_numa",
    "sched/sched_stick_numa",
    "sched/sched_swap_numa",
    "migrate/mm_migrate_pages_start",
    "migrate/mm_migrate_pages",
];

/// Makes the kernel write the same events as text, beside the recording.
pub(super) fn listen() -> io::Result<()> {
    for (file, text) in [("trace_clock", "mono"), ("options/record-tgid", "1"), ("trace", "")] {
        fs::write(format!("{TRACING}/{file}"), text)?;
    }
    EVENTS.iter().try_for_each(|event| fs::write(format!("{TRACING}/events/{event}/enable"), "1"))
}

/// Prints all of it.
pub(super) fn print(trace: &Trace) -> io::Result<()> {
    let mut file = Vec::new();
    parquet::write(trace, &mut file).map_err(|error| io::Error::other(error.to_string()))?;
    for bytes in file.chunks(64) {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("file {digits}");
    }
    for line in fs::read_to_string(format!("{TRACING}/trace"))?.lines() {
        println!("text {line}");
    }
    for event in EVENTS {
        let format = fs::read_to_string(format!("{TRACING}/events/{event}/format"))?;
        format.lines().for_each(|line| println!("format {line}"));
    }
    Ok(())
}
