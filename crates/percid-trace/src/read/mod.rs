//! Reads traces that others recorded.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::Error;
use crate::trace::Trace;
use crate::{filtered, late, parquet, perfetto, spool};

mod bytes;
mod ftrace_text;
mod other;
mod perf_data;
mod repeats;
mod stream;
mod timehist;
mod trace_dat;
mod tracing_data;
mod unpacked;

pub use crate::limits::{LAST_TIME, MOST_CPUS};

/// A format of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What `perf record` and `perf sched record` write, into a file or a pipe.
    PerfData,
    /// What `trace-cmd record` writes, in version 6 or 7.
    TraceDat,
    /// A table as this crate stores it.
    Parquet,
    /// A trace of Perfetto.
    Perfetto,
    /// What a recorder has written that has not ended: see [`spool`].
    Spool,
    /// A file of one of the others, compressed by gzip or zstd.
    Compressed,
    /// Text with a line for each event, as tracefs, `trace-cmd report`, `perf script`, Android's systrace
    /// and `perf sched timehist` write it.
    Text,
}

impl Format {
    /// All that are known.
    pub const ALL: [Format; 7] = [
        Format::PerfData,
        Format::TraceDat,
        Format::Parquet,
        Format::Perfetto,
        Format::Spool,
        Format::Compressed,
        Format::Text,
    ];

    /// How many bytes [`Format::detect`] looks at.
    pub const MAGIC: usize = 10;

    /// The format of a file that begins with these bytes. What begins like no other is taken for
    /// text.
    pub fn detect(first_bytes: &[u8]) -> Format {
        match first_bytes {
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..]
            | [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Format::PerfData,
            [b'P', b'A', b'R', b'1', ..] => Format::Parquet,
            _ if first_bytes.starts_with(trace_dat::MAGIC) => Format::TraceDat,
            _ if unpacked::is_compressed(first_bytes) => Format::Compressed,
            _ if first_bytes.starts_with(&spool::MAGIC) => Format::Spool,
            // The first field of the message, which has a length: a packet. A text would begin with
            // an empty line.
            [b'\n', length, ..] if *length != b'\n' => Format::Perfetto,
            _ => Format::Text,
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::PerfData => "perf.data",
            Format::TraceDat => "trace.dat",
            Format::Parquet => "Parquet",
            Format::Perfetto => "Perfetto",
            Format::Spool => "a recording that has not ended",
            Format::Compressed => "a compressed file",
            Format::Text => "text of tracefs, trace-cmd report, perf script or perf sched timehist",
        }
    }
}

/// Reads a file in any of the known formats, or a directory of `perf record --threads`, into memory: the
/// file as it is, and 32 bytes for each
/// event. What is no file, such as a pipe or a device, may have 4 GiB, and is refused early where it does
/// not look like a trace; what is compressed may become as long.
///
/// # Errors
///
/// What the system refuses, and where the file does not follow its format.
pub fn read(path: &Path) -> Result<Trace, Error> {
    if path.is_dir() {
        return perf_data::read_directory(path).map(settled).and_then(checked);
    }
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return read_stream(file);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    read_vec(bytes)
}

/// Reads what is no file, such as standard input, like [`read`].
///
/// # Errors
///
/// What the system refuses, and where the bytes do not follow their format.
pub fn read_stream(from: impl Read) -> Result<Trace, Error> {
    stream::read(from, may_be_trace).and_then(read_vec)
}

fn read_vec(bytes: Vec<u8>) -> Result<Trace, Error> {
    match Format::detect(&bytes) {
        Format::Parquet => parquet::read_bytes(bytes).and_then(checked),
        _ => read_bytes(&bytes),
    }
}

/// Whether what begins like this can be a trace. Everything but text begins with bytes of its own.
fn may_be_trace(beginning: &[u8]) -> bool {
    match Format::detect(beginning) {
        Format::Text => {
            ftrace_text::has_event(beginning)
                || timehist::is_one(beginning)
                || other::told(beginning).is_some()
        }
        _ => true,
    }
}

/// Reads the content of a file in any of the known formats.
///
/// # Errors
///
/// Where it does not follow its format.
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, Error> {
    if Format::detect(bytes) != Format::Compressed {
        return read_plain(bytes);
    }
    let plain = unpacked::unpack(bytes, stream::MOST)?;
    match Format::detect(&plain) {
        Format::Compressed => Err(Error::in_file("it is compressed twice: decompress it first")),
        _ => read_plain(&plain),
    }
}

fn read_plain(bytes: &[u8]) -> Result<Trace, Error> {
    let trace = match Format::detect(bytes) {
        Format::PerfData => perf_data::read(bytes).map(settled),
        Format::TraceDat => trace_dat::read(bytes).map(settled),
        Format::Text | Format::Compressed => read_text(bytes).map(settled),
        Format::Perfetto => perfetto::read(bytes),
        Format::Spool => spool::read_bytes(bytes),
        Format::Parquet => parquet::read_bytes(bytes.to_vec()),
    };
    trace.and_then(checked)
}

/// Reads what needs the whole file: the states, whether some threads were recorded only, and CPUs of which the
/// beginning was not recorded.
fn settled(mut trace: Trace) -> Trace {
    trace.settle_states();
    trace.origin.coverage.filtered |= filtered::shows_by_breaks(&trace.events);
    late::note(&mut trace);
    trace
}

/// Reads a text of whatever kind, which its first lines tell.
fn read_text(text: &[u8]) -> Result<Trace, Error> {
    if timehist::is_one(text) {
        return timehist::read(text);
    }
    if text.trim_ascii_start().starts_with(b"{") {
        let what = "this is JSON, which `perf data convert --to-json` writes without saying which event is which: \
                    expected was the perf.data that it is made of";
        return Err(Error::at_byte(0, what));
    }
    match other::told(text) {
        Some(what) => Err(Error::at_byte(0, what)),
        None => ftrace_text::read(text),
    }
}

/// Refuses CPUs that no kernel has, as every analysis of a trace keeps something for each CPU up to
/// the largest; and times that no clock reaches.
fn checked(trace: Trace) -> Result<Trace, Error> {
    let fault = |cpu, time| match () {
        () if cpu >= MOST_CPUS => Some(format!("CPU {cpu}: expected at most {}", MOST_CPUS - 1)),
        () if time > LAST_TIME => Some(format!("time {time} ns: expected at most {LAST_TIME}")),
        () => None,
    };
    let mut events = trace.events.iter().enumerate();
    if let Some((at, what)) =
        events.find_map(|(at, event)| Some((at, fault(event.cpu, event.time)?)))
    {
        return Err(Error::at_event(at as u64, what));
    }
    match trace.counted.iter().find_map(|turn| fault(turn.cpu, turn.time)) {
        Some(what) => Err(Error::in_file(format!("in what was counted: {what}"))),
        None => Ok(trace),
    }
}
