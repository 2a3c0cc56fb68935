//! Threads that wander over all CPUs use no more IDs than there are threads, or allowed CPUs; with
//! --relaxed, no more than allowed CPUs.

use std::sync::Barrier;

use percid::{Counter, IdLimit, Source};

use crate::options::Options;
use crate::pinning;
use crate::random::{Random, seed};
use crate::verdict::Verdict;

/// Number of moves of each thread.
const MOVES: usize = 300;

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(Source::Table);
    let mut cpus = pinning::allowed();
    cpus.truncate(options.cpus.unwrap_or(cpus.len()));
    if !pinning::restrict(0, &cpus) {
        return Err(format!("cannot use CPUs {cpus:?}"));
    }
    percid::set_id_limit(if options.relaxed { IdLimit::Adaptive } else { IdLimit::Strict });
    let counter = Counter::with_source(source).map_err(|error| error.to_string())?;
    let ids = wander(&counter, source, &cpus, options.threads);
    let bound = if options.relaxed { cpus.len() } else { cpus.len().min(options.threads) };
    let used = source.id_count() as usize;
    let (sum, expected) = (counter.sum(), (options.threads * MOVES * 100) as i64);
    let figures = format!(
        "source={source} threads={} cpus={} moves={} ids={ids:?} used={used} sum={sum}",
        options.threads,
        cpus.len(),
        options.threads * MOVES,
    );
    let dense = used <= bound && ids.iter().all(|&id| (id as usize) < bound);
    if dense && sum == expected { Ok(figures) } else { Err(format!("{figures}: bound {bound}")) }
}

/// Runs the threads, the calling one among them so that there are no others, and returns the
/// distinct IDs that they held.
fn wander(counter: &Counter, source: Source, cpus: &[u32], threads: usize) -> Vec<u32> {
    let (start, end) = (Barrier::new(threads), Barrier::new(threads));
    let work = |index: usize| {
        let mut random = Random::new(seed(), index as u64);
        let mut ids = Vec::new();
        start.wait();
        for step in 0..MOVES {
            // Both fixed rounds, in which threads meet on CPUs, and random jumps.
            let next = if step % 2 == 0 { index + step } else { random.below(cpus.len()) };
            pinning::restrict(0, &[cpus[next % cpus.len()]]);
            (0..100).for_each(|_| counter.add(1));
            ids.extend(source.current_id());
        }
        pinning::restrict(0, cpus);
        // No thread ends before all are done: a thread less is a smaller bound.
        end.wait();
        ids
    };
    let mut ids = std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..threads).map(|index| scope.spawn(move || work(index))).collect();
        let mut ids = work(0);
        for other in others {
            ids.extend(other.join().expect("no panic"));
        }
        ids
    });
    ids.sort_unstable();
    ids.dedup();
    ids
}
