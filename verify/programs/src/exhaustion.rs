//! More counters than the arena has room for, and no arena at all: everything still counts.

use percid::{Counter, Source};

use crate::Verdict;
use crate::options::Options;

/// More than fit: an ID's memory holds 2^21 words.
const COUNTERS: usize = (1 << 21) + 1000;

pub(crate) fn run(options: &Options) -> Verdict {
    if options.confined {
        confine_address_space()?;
    }
    let mut counters: Vec<Counter> = Vec::with_capacity(COUNTERS);
    counters.resize_with(COUNTERS, Counter::new);
    for round in 1..=2 {
        counters.iter().for_each(|counter| counter.add(round));
    }
    let wrong = counters.iter().filter(|counter| counter.sum() != 3).count();
    let refused = Source::Atomic.available().and_then(|()| Counter::with_source(Source::Atomic));
    let full = refused.err().map(|error| error.to_string());
    // What is given back can be had again.
    drop(counters);
    let again = Counter::with_source(Source::Atomic).is_ok();
    let figures = format!("counters={COUNTERS} wrong={wrong} full={full:?} again={again}");
    let right = wrong == 0 && full.is_some() && again != options.confined;
    if right { Ok(figures) } else { Err(figures) }
}

/// Leaves room for the counters' handles, but for no reservation of the arena.
fn confine_address_space() -> Result<(), String> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages = statm.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
    let now = pages.ok_or("no size in statm")? * 4096;
    let limit = now + 30 * (1 << 20);
    let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the structure is valid.
    match unsafe { libc::setrlimit(libc::RLIMIT_AS, &limits) } {
        0 => Ok(()),
        _ => Err("cannot limit the address space".to_owned()),
    }
}
