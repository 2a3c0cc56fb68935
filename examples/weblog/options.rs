//! The command line.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

pub(crate) const HELP: &str = "\
Aggregates the log of a web server in the Combined Log Format.

Usage: weblog [OPTIONS] FILE        (FILE may be - for standard input)

  --threads N   threads that read the log [default: one for every CPU]
  --top N       how many of the paths with most hits are printed [default: 10]
  --repeat N    read the file N times, to have something to measure [default: 1]
  --chunk N     bytes that a thread takes at a time [default: 65536]
  --json        print one JSON document
  --help        print this

PERCID_SOURCE=kernel|table|atomic chooses where percid takes its IDs from.
";

/// The smallest chunk: less is no use, and lines must be shorter than a chunk.
const SMALLEST_CHUNK: usize = 64;

/// The largest chunk: every thread has one in memory.
const LARGEST_CHUNK: usize = 1 << 30;

/// More threads than any machine has CPUs.
const MOST_THREADS: usize = 8192;

/// The request of the user.
#[derive(Debug)]
pub(crate) enum Asked {
    Run(Options),
    Help,
}

#[derive(Debug)]
pub(crate) struct Options {
    /// `None` for standard input.
    pub(crate) file: Option<PathBuf>,
    pub(crate) threads: usize,
    pub(crate) top: usize,
    pub(crate) repeat: u32,
    pub(crate) chunk: usize,
    pub(crate) json: bool,
}

impl Options {
    /// Returns the name of the log for messages.
    pub(crate) fn name(&self) -> std::borrow::Cow<'_, str> {
        self.file.as_ref().map_or("standard input".into(), |file| file.to_string_lossy())
    }
}

/// Reads the arguments of this process.
pub(crate) fn read() -> Result<Asked, lexopt::Error> {
    parse(lexopt::Parser::from_env())
}

fn parse(mut parser: lexopt::Parser) -> Result<Asked, lexopt::Error> {
    use lexopt::prelude::*;
    let mut options = Options {
        file: None,
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        top: 10,
        repeat: 1,
        chunk: 64 * 1024,
        json: false,
    };
    let mut file = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Value(value) if file.is_none() => file = Some(value),
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("top") => options.top = parser.value()?.parse()?,
            Long("repeat") => options.repeat = parser.value()?.parse()?,
            Long("chunk") => options.chunk = parser.value()?.parse()?,
            Long("json") => options.json = true,
            Long("help") | Short('h') => return Ok(Asked::Help),
            other => return Err(other.unexpected()),
        }
    }
    let file = file.ok_or("which log? FILE is missing")?;
    options.file = (file != "-").then(|| file.into());
    check(&options)?;
    Ok(Asked::Run(options))
}

fn check(options: &Options) -> Result<(), lexopt::Error> {
    if !(1..=MOST_THREADS).contains(&options.threads) {
        return Err(format!("--threads must be 1 to {MOST_THREADS}").into());
    }
    if options.repeat == 0 {
        return Err("--repeat must be at least 1".into());
    }
    if options.repeat > 1 && options.file.is_none() {
        return Err("standard input can be read once only: --repeat needs a file".into());
    }
    if !(SMALLEST_CHUNK..=LARGEST_CHUNK).contains(&options.chunk) {
        return Err(format!("--chunk must be {SMALLEST_CHUNK} to {LARGEST_CHUNK}").into());
    }
    Ok(())
}
