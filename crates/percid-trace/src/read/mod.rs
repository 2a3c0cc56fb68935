//! Reading of traces in all supported formats.

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
    /// The output of `perf record` and `perf sched record`, in a file or a pipe.
    PerfData,
    /// The output of `trace-cmd record`, in version 6 or 7.
    TraceDat,
    /// A table as this crate stores it.
    Parquet,
    /// A trace of Perfetto.
    Perfetto,
    /// The output of a recorder that has not ended: see [`spool`].
    Spool,
    /// A file of one of the others, compressed by gzip or zstd.
    Compressed,
    /// Text with a line for each event, as written by tracefs, `trace-cmd report`, `perf script`,
    /// Android's systrace and `perf sched timehist`.
    Text,
}

impl Format {
    /// All known formats.
    pub const ALL: [Format; 7] = [
        Format::PerfData,
        Format::TraceDat,
        Format::Parquet,
        Format::Perfetto,
        Format::Spool,
        Format::Compressed,
        Format::Text,
    ];

    /// Number of bytes that [`Format::detect`] reads at most.
    pub const MAGIC: usize = 10;

    /// Returns the format of a file that begins with these bytes. If they match no other format, it
    /// is text.
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

    /// Returns the usual name of the format.
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

/// Reads a file in any known format, or a directory of `perf record --threads`, into memory.
///
/// This requires memory for the file as it is, and 32 bytes for each event. Input that is not a
/// regular file, such as a pipe or a device, may have 4 GiB. It is refused early if it does not
/// look like a trace. Compressed files may have 4 GiB after decompression.
///
/// # Errors
///
/// If the system cannot read the file, or if it does not follow its format.
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

/// Reads a stream, such as standard input, like [`read`].
///
/// # Errors
///
/// If the system cannot read the stream, or if the bytes do not follow their format.
pub fn read_stream(from: impl Read) -> Result<Trace, Error> {
    stream::read(from, may_be_trace).and_then(read_vec)
}

fn read_vec(bytes: Vec<u8>) -> Result<Trace, Error> {
    match Format::detect(&bytes) {
        Format::Parquet => parquet::read_bytes(bytes).and_then(checked),
        _ => read_bytes(&bytes),
    }
}

/// Returns `true` if bytes can be the beginning of a trace. All formats except text begin with
/// distinct bytes.
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
/// If the content does not follow its format.
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, Error> {
    if Format::detect(bytes) != Format::Compressed {
        return read_plain(bytes);
    }
    let plain = unpacked::unpack(bytes, stream::MAX_READ_BYTES)?;
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

/// Completes a trace with what requires the whole file: the states, whether only some threads were
/// recorded, and the CPUs whose beginning was not recorded.
fn settled(mut trace: Trace) -> Trace {
    trace.settle_states();
    trace.origin.coverage.filtered |= filtered::shows_by_breaks(&trace.events);
    late::note(&mut trace);
    trace
}

/// Reads a text of any kind, which its first lines determine.
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

/// Returns a trace, or an error if it has a CPU that no kernel has or a time that no clock reaches.
/// Every analysis of a trace has values for each CPU up to the largest.
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
