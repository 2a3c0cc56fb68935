//! The command line.

use std::num::NonZero;
use std::thread;
use std::time::Duration;

pub(crate) const HELP: &str = "\
A cache of 4 KiB pages under a load whose keys follow Zipf's distribution.

Usage: cache [OPTIONS]

  --threads N    threads that look pages up [default: one for every CPU]
  --lookups N    lookups of each thread [default: 300000]
  --keys N       different keys [default: 100000]
  --capacity N   pages that the cache keeps [default: 10000]
  --skew X       how unequal the keys are: 0 for equal ones, 0.99 for many real loads [default: 0.99]
  --seed N       the same seed gives the same keys [default: 1]
  --drain-ms N   how often evicted pages are wiped, in milliseconds [default: 1]
  --json         print one JSON document
  --help         print this

PERCID_SOURCE=kernel|table|atomic chooses where percid takes its IDs from.
";

/// More threads than any machine has CPUs.
const MOST_THREADS: usize = 8192;

/// 16 bytes of memory for each are enough.
const MOST_KEYS: usize = 100_000_000;

/// The request of the user.
#[derive(Debug)]
pub(crate) enum Asked {
    Run(Options),
    Help,
}

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) threads: usize,
    pub(crate) lookups: u64,
    pub(crate) keys: usize,
    pub(crate) capacity: usize,
    pub(crate) skew: f64,
    pub(crate) seed: u64,
    pub(crate) drain_every: Duration,
    pub(crate) json: bool,
}

/// Reads the arguments of this process.
pub(crate) fn read() -> Result<Asked, lexopt::Error> {
    parse(lexopt::Parser::from_env())
}

fn parse(mut parser: lexopt::Parser) -> Result<Asked, lexopt::Error> {
    use lexopt::prelude::*;
    let mut options = Options {
        threads: thread::available_parallelism().map_or(1, NonZero::get),
        lookups: 300_000,
        keys: 100_000,
        capacity: 10_000,
        skew: 0.99,
        seed: 1,
        drain_every: Duration::from_millis(1),
        json: false,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("lookups") => options.lookups = parser.value()?.parse()?,
            Long("keys") => options.keys = parser.value()?.parse()?,
            Long("capacity") => options.capacity = parser.value()?.parse()?,
            Long("skew") => options.skew = parser.value()?.parse()?,
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("drain-ms") => {
                options.drain_every = Duration::from_millis(parser.value()?.parse()?)
            }
            Long("json") => options.json = true,
            Long("help") | Short('h') => return Ok(Asked::Help),
            other => return Err(other.unexpected()),
        }
    }
    check(&options)?;
    Ok(Asked::Run(options))
}

fn check(options: &Options) -> Result<(), lexopt::Error> {
    if !(1..=MOST_THREADS).contains(&options.threads) {
        return Err(format!("--threads must be 1 to {MOST_THREADS}").into());
    }
    if !(1..=MOST_KEYS).contains(&options.keys) {
        return Err(format!("--keys must be 1 to {MOST_KEYS}").into());
    }
    if options.capacity == 0 {
        return Err("--capacity must be at least 1".into());
    }
    if !(0.0..=10.0).contains(&options.skew) {
        return Err("--skew must be 0 to 10".into());
    }
    Ok(())
}
