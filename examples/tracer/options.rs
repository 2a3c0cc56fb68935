//! The command line.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use percid::{Overflow, Ring};

pub(crate) const HELP: &str = "\
Traces a small work queue and writes what its threads did, for ui.perfetto.dev or chrome://tracing.

Usage: tracer [OPTIONS] OUTPUT

  --threads N          threads that work [default: one for every CPU]
  --tasks N            tasks that they do [default: 5000]
  --ring N             bytes of the ring of every CPU, a power of two [default: 262144]
  --overflow POLICY    drop-newest or overwrite-oldest, when a ring is full [default: drop-newest]
  --poll-ms N          how often the rings are emptied, in milliseconds [default: 1]
  --flight-recorder    overwrite the oldest, and empty the rings once, at the end
  --json               print one JSON document about the trace
  --help               print this

PERCID_SOURCE=kernel|table|atomic chooses where percid takes its IDs from.
";

/// The number of a thread has 16 bits.
const MOST_THREADS: usize = 8192;

/// The request of the user.
#[derive(Debug)]
pub(crate) enum Asked {
    Run(Options),
    Help,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) output: PathBuf,
    pub(crate) threads: usize,
    pub(crate) tasks: u32,
    pub(crate) ring: usize,
    pub(crate) overflow: Overflow,
    /// `None` for once, at the end.
    pub(crate) poll_every: Option<Duration>,
    pub(crate) json: bool,
}

/// Reads the arguments of this process.
pub(crate) fn read() -> Result<Asked, lexopt::Error> {
    parse(lexopt::Parser::from_env())
}

fn parse(mut parser: lexopt::Parser) -> Result<Asked, lexopt::Error> {
    use lexopt::prelude::*;
    let mut options = Options {
        output: PathBuf::new(),
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        tasks: 5000,
        ring: 256 * 1024,
        overflow: Overflow::DropNewest,
        poll_every: Some(Duration::from_millis(1)),
        json: false,
    };
    let (mut output, mut flight_recorder, mut chosen) = (None, false, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(value) if output.is_none() => output = Some(value),
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("tasks") => options.tasks = parser.value()?.parse()?,
            Long("ring") => options.ring = parser.value()?.parse()?,
            Long("overflow") => chosen = Some(parser.value()?.parse_with(policy)?),
            Long("poll-ms") => {
                options.poll_every = Some(Duration::from_millis(parser.value()?.parse()?));
            }
            Long("flight-recorder") => flight_recorder = true,
            Long("json") => options.json = true,
            Long("help") | Short('h') => return Ok(Asked::Help),
            other => return Err(other.unexpected()),
        }
    }
    options.output = output.ok_or("where to? OUTPUT is missing")?.into();
    options.overflow = chosen.unwrap_or(Overflow::DropNewest);
    if flight_recorder {
        if chosen == Some(Overflow::DropNewest) {
            return Err("a flight recorder keeps the newest: not with drop-newest".into());
        }
        options.overflow = Overflow::OverwriteOldest;
        options.poll_every = None;
    }
    check(&options)?;
    Ok(Asked::Run(options))
}

fn policy(name: &str) -> Result<Overflow, &'static str> {
    match name {
        "drop-newest" => Ok(Overflow::DropNewest),
        "overwrite-oldest" => Ok(Overflow::OverwriteOldest),
        _ => Err("expected drop-newest or overwrite-oldest"),
    }
}

fn check(options: &Options) -> Result<(), lexopt::Error> {
    if !(1..=MOST_THREADS).contains(&options.threads) {
        return Err(format!("--threads must be 1 to {MOST_THREADS}").into());
    }
    let sizes = Ring::MIN_BYTES..=Ring::MAX_BYTES;
    if !options.ring.is_power_of_two() || !sizes.contains(&options.ring) {
        let (min, max) = sizes.into_inner();
        return Err(format!("--ring must be a power of two from {min} to {max}").into());
    }
    Ok(())
}
