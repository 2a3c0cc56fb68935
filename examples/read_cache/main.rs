//! A cache whose hits write to memory of the running thread's ID only.
//!
//! A hit takes a shard's `percid_sync::RwLock` for reading and records the entry's place in the
//! shard's `percid_sync::ReadBuffer`. The insertion that fills a batch applies the records to the
//! order of eviction (`segmented.rs`), evicts, and moves the batch into the table (`shard.rs`). A
//! batch pays for both fences. Records that find no room are lost. Nothing is evicted without
//! insertions, so no record is needed then.
//!
//! The program prints times of hits, then hit rates and times where a miss inserts, with the
//! feature `sync-peers` beside moka and quick_cache. All have the same keys and hash function, and
//! their own defaults otherwise.
//!
//! Exit status: 0 if every value was right, 2 for wrong arguments.

mod cache;
mod measure;
mod segmented;
mod shard;
mod subject;
#[path = "../cache/zipf.rs"]
mod zipf;

use std::io::{self, Write};
use std::process::ExitCode;

const HELP: &str = "\
Times and hit rates of a cache on percid-sync's lock and read buffer.

Usage: read_cache [OPTIONS]

  --lookups N    lookups of each measurement [default: 1000000]
  --keys N       different keys [default: 100000]
  --capacity N   entries of the cache [default: 10000]
  --rounds N     measurements of each cache and number of threads [default: 3]
  --seed N       the same seed gives the same keys [default: 1]
  --help         print this

PERCID_SOURCE=kernel|table|atomic chooses where percid takes its IDs from.
";

/// The arguments.
pub(crate) struct Options {
    lookups: usize,
    keys: usize,
    capacity: usize,
    rounds: usize,
    seed: u64,
}

fn main() -> ExitCode {
    let options = match read_options() {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("read_cache: {wrong}; see read_cache --help");
            return ExitCode::from(2);
        }
    };
    // The reader may have gone away (`read_cache | head -1`).
    let _ = match options {
        Some(options) => measure::print(&options, &mut io::stdout()),
        None => io::stdout().write_all(HELP.as_bytes()),
    };
    ExitCode::SUCCESS
}

/// Returns `None` if the user asks for help.
fn read_options() -> Result<Option<Options>, lexopt::Error> {
    use lexopt::prelude::*;
    let mut options =
        Options { lookups: 1_000_000, keys: 100_000, capacity: 10_000, rounds: 3, seed: 1 };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("lookups") => options.lookups = arguments.value()?.parse()?,
            Long("keys") => options.keys = arguments.value()?.parse()?,
            Long("capacity") => options.capacity = arguments.value()?.parse()?,
            Long("rounds") => options.rounds = arguments.value()?.parse()?,
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    if [options.lookups, options.keys, options.rounds].contains(&0) {
        return Err("--lookups, --keys and --rounds must be at least 1".into());
    }
    if options.capacity < subject::SHARDS {
        return Err(format!("--capacity must be at least {}", subject::SHARDS).into());
    }
    Ok(Some(options))
}
