//! Measures the time and memory to store and read traces.
//!
//! `cargo run --release -p percid-trace --example formats -- write trace.parquet 10000000` stores a
//! made-up schedule, `... -- read trace.parquet` reads it again. The format goes by the name of the
//! file: `.parquet` or `.pftrace`.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use percid_trace::{Coverage, parquet, perfetto};

#[path = "../tests/suite/schedule/mod.rs"]
mod schedule;

const USAGE: &str = "usage: formats write FILE EVENTS | formats read FILE";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", path, events] => write(path, events.parse()?)?,
        ["read", path] => read(path)?,
        _ => return Err(USAGE.into()),
    }
    println!("peak memory: {}", peak_memory()?);
    Ok(())
}

fn write(path: &str, events: usize) -> Result<(), Box<dyn Error>> {
    let mut trace = schedule::plausible(1, events);
    // For a trace that is known to be incomplete, `percid trace latency` and others give no
    // figures.
    trace.origin.coverage = Coverage::default();
    trace.origin.lost = 0;
    let start = Instant::now();
    let mut file = BufWriter::new(File::create(path)?);
    match is_parquet(path) {
        true => parquet::write(&trace, &mut file)?,
        false => perfetto::write(&trace, &[], &mut file)?,
    }
    file.flush()?;
    rate("written", trace.events.len(), start);
    let bytes = std::fs::metadata(path)?.len();
    println!("{:.2} bytes an event", bytes as f64 / trace.events.len() as f64);
    Ok(())
}

fn read(path: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let trace = percid_trace::read::read(Path::new(path))?;
    rate("read", trace.events.len(), start);
    Ok(())
}

fn is_parquet(path: &str) -> bool {
    path.ends_with(".parquet")
}

fn rate(done: &str, events: usize, start: Instant) {
    let rate = events as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("{events} events {done}, {rate:.1} million per second");
}

fn peak_memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().to_string())
}
