//! The arguments of `percid sim thread-hash`, and its manual.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use percid_command::arguments::whole;
use percid_sim::numa::hash::{Method, PUBLISHED};

pub(super) const ABOUT: &str = "\
Computes how well the NUMA scan's activity sets tell the threads of a process apart. A
set has 64 bits (as published) or 128 (an idea that was never built); a thread's bit is
taken from its thread ID, either its lower bits (pid_6bit) or a multiplicative hash
(hash32). Two threads with one bit pass for one another. Everything here is counted,
not sampled.

  tables         for each --range of thread IDs, method and width: how many threads have
                 each bit. Commas put several ranges in one table: the main thread and
                 its workers. Without --range the four published runs, of 64 bits,
                 beside the published tables
  crowds         for each number of threads with consecutive IDs, over every first ID
                 below 32768: `distinct` bits (fewest, mean, most), the share of
                 `colliding_pairs`, and the share of first IDs that are `free` of
                 collisions
  never_collide  by width: the most threads of which no two collide, whatever their
                 first ID, with the hash
  blind          by width: the fewest threads that always have every bit, so that the
                 set tells nothing

With --find it goes the other way: which thread IDs gave a table? All consecutive IDs
below --below are tried, with or without one main thread besides, and those are shown that
give every table exactly; of main threads the nearest before the workers. Give all tables
of the run together: one alone leaves hundreds of possibilities. If nothing fits, up to
--missing threads may have been in no table because they never scanned, the same ones in
each. In JSON:
`missing`, and `matches` with first, last and main.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim thread-hash
  percid sim thread-hash --range 4350-4357 --json | jq .tables
  percid sim thread-hash --range 4280,4350-4357
  percid sim thread-hash --find iter0/8-thread
  percid sim thread-hash --find iter0/64-thread --missing 9
  percid sim thread-hash --find pid_6bit=62:1,63:1,0:1 --find hash32=35:1,59:1,20:1
  percid sim thread-hash --threads 65,129,385";

/// Thread IDs: `4280,4350-4357`. Ranges ascend, and no ID is in two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadIds(Vec<(u32, u32)>);

impl ThreadIds {
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }
}

impl fmt::Display for ThreadIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |&(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        f.write_str(&self.0.iter().map(range).collect::<Vec<_>>().join(","))
    }
}

/// Tables whose thread IDs are searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The tables of a published run.
    Published(&'static str),
    /// One table: threads by bit.
    Given(Method, BTreeMap<u32, u32>),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct HashArguments {
    /// Thread IDs of one table: single ones and FIRST-LAST, separated by commas [repeatable]
    #[arg(long, value_name = "IDS", value_parser = range)]
    pub(crate) range: Vec<ThreadIds>,

    /// Numbers of threads with consecutive IDs, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "8,16,32,34,64,65,128,129,256,385", value_parser = whole::<1, 32_767>)]
    pub(crate) threads: Vec<u64>,

    /// A table to search the thread IDs of: a published run, such as iter0/8-thread, or pid_6bit=
    /// or hash32= with BIT:THREADS, separated by commas [repeatable]
    #[arg(long, value_name = "TABLE", value_parser = wanted, conflicts_with_all = ["range", "threads"])]
    pub(crate) find: Vec<Wanted>,

    /// Bits of the sets of --find: 64 or 128
    #[arg(long, value_name = "N", default_value = "64", value_parser = bits, requires = "find")]
    pub(crate) bits: u32,

    /// The number of threads of --find that may be in no table
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<0, 1000>, requires = "find")]
    pub(crate) missing: u64,

    /// The thread number at which the search of --find ends
    #[arg(long, value_name = "ID", default_value = "32768", value_parser = whole::<2, 4_194_304>, requires = "find")]
    pub(crate) below: u64,

    /// Write a report with the same, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// The largest thread ID on Linux, whatever its settings are.
const MAX_THREAD_ID: u32 = 1 << 22;

fn range(text: &str) -> Result<ThreadIds, String> {
    let expected = || {
        format!(
            "expected FIRST-LAST with 1 <= FIRST <= LAST <= {MAX_THREAD_ID}, or several in \
             ascending order, such as 4280,4350-4357"
        )
    };
    let part = |part: &str| {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (first, last),
            None => (part, part),
        };
        let ends = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (1 <= ends.0 && ends.0 <= ends.1 && ends.1 <= MAX_THREAD_ID).then_some(ends)
    };
    let parts: Option<Vec<(u32, u32)>> = text.split(',').map(part).collect();
    // A single ID is not a range to count.
    let parts =
        parts.filter(|parts| parts.iter().any(|(first, last)| first < last) || parts.len() > 1);
    let ascend = |parts: &Vec<(u32, u32)>| parts.windows(2).all(|pair| pair[0].1 < pair[1].0);
    parts.filter(ascend).map(ThreadIds).ok_or_else(expected)
}

fn wanted(text: &str) -> Result<Wanted, String> {
    if let Some(run) = PUBLISHED.iter().find(|run| run.table == text) {
        return Ok(Wanted::Published(run.table));
    }
    let expected = || {
        let runs = PUBLISHED.map(|run| run.table).join(", ");
        format!(
            "expected one of {runs}; or pid_6bit= or hash32= and BIT:THREADS, such as hash32=7:1,32:2"
        )
    };
    let (method, counts) = text.split_once('=').ok_or_else(expected)?;
    let method = Method::ALL.into_iter().find(|known| known.name() == method.trim());
    let mut table = BTreeMap::new();
    for count in counts.split(',') {
        let pair = count.split_once(':');
        let pair = pair.and_then(|(bit, threads)| {
            Some((bit.trim().parse().ok()?, threads.trim().parse().ok()?))
        });
        let (bit, threads) = pair.ok_or_else(expected)?;
        if table.insert(bit, threads).is_some() {
            return Err(format!("expected each bit once, found {bit} twice"));
        }
    }
    Ok(Wanted::Given(method.ok_or_else(expected)?, table))
}

fn bits(text: &str) -> Result<u32, String> {
    let found = ["64", "128"].into_iter().find(|known| *known == text);
    found.and_then(|bits| bits.parse().ok()).ok_or_else(|| "allowed are 64, 128".to_owned())
}
