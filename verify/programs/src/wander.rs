//! One thread wanders over all CPUs: the table gives it extra IDs while it does, and takes them
//! back when it stays.

use std::time::Duration;

use percid::{Counter, IdLimit, Source, testing};

use crate::length::Length;
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

/// Time that it stays before it moves again: twice the time after which IDs expire, and some ticks.
const QUIET: Duration = Duration::from_millis(250);

pub(crate) fn run(options: &Options) -> Verdict {
    let cpus = pinning::allowed();
    if cpus.len() < 2 {
        return Ok("skipped: there is one CPU".to_owned());
    }
    let counter = Counter::with_source(Source::Table).map_err(|error| error.to_string())?;
    let mut figures = Vec::new();
    let mut right = true;
    let mut moves = 0;
    let two = IdLimit::AtMost(2);
    for (density, most) in [(IdLimit::Adaptive, cpus.len()), (two, 2), (IdLimit::Strict, 1)] {
        percid::set_id_limit(density);
        testing::compact_table();
        let (made, wandering) = wander(&counter, &cpus, most, Length::begin(options, 0.25))?;
        moves += made;
        std::thread::sleep(QUIET);
        // The last CPU still holds an ID, so that a return to it is no slow path: steal it to force
        // one.
        let last = &cpus[cpus.len() - 1..];
        testing::steal(last[0]).ok_or("CPU without an ID")?.put_back(None);
        let (made, quiet) = wander(&counter, last, 1, Length::begin(options, 0.0))?;
        moves += made;
        figures.push(format!("{density:?}: wandering={wandering} quiet={quiet}"));
        right &= wandering == most && quiet == 1;
    }
    let figures = format!("cpus={} moves={moves} {}", cpus.len(), figures.join(", "));
    if right && counter.sum() == moves * 10 { Ok(figures) } else { Err(figures) }
}

/// Moves from CPU to CPU, with ten increments on each, at least once over all, and until `wanted`
/// IDs are in use after a pass. Returns the number of moves, and the largest number of IDs in use
/// after a pass. Sometimes all are taken back, and on a machine that hardly runs, IDs expire on the
/// way.
fn wander(
    counter: &Counter,
    cpus: &[u32],
    wanted: usize,
    length: Length,
) -> Result<(i64, usize), String> {
    let (mut moves, mut most) = (0, 0);
    loop {
        for &cpu in cpus {
            pinning::restrict(0, &[cpu]);
            (0..10).for_each(|_| counter.add(1));
            moves += 1;
        }
        most = most.max(testing::table_ids_in_use().ok_or("the table is locked")?);
        if !length.goes_on(u64::from(most >= wanted)) {
            return Ok((moves, most));
        }
    }
}
