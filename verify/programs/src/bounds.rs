//! The bound of the IDs follows the affinity as it widens and the threads as they become fewer.

use std::sync::Barrier;

use percid::{Counter, IdLimit, Source, testing};

use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

pub(crate) fn run(_: &Options) -> Verdict {
    let cpus = pinning::allowed();
    if cpus.len() < 2 {
        return Ok("skipped: one CPU has one bound".to_owned());
    }
    percid::set_id_limit(IdLimit::Strict);
    let counter = Counter::with_source(Source::Table).map_err(|error| error.to_string())?;
    let confined = &cpus[..cpus.len() / 2];
    pinning::restrict(0, confined);
    let narrow = largest_id(&counter, confined, confined.len() + 2);
    pinning::restrict(0, &cpus);
    let wide = largest_id(&counter, &cpus, cpus.len());
    // Only this thread is left: the union stays wide, but one thread needs one ID.
    wait_until_alone();
    let evicted = testing::compact_table();
    let alone = wander_alone(&counter, &cpus);
    pinning::restrict(0, confined);
    let again = wander_alone(&counter, confined);
    let figures = format!(
        "cpus={} narrow: {} IDs on {} CPUs, wide: {} IDs on {}, alone: {} ID, narrow again: {} ID, \
         taken back on request={evicted}",
        cpus.len(),
        narrow + 1,
        confined.len(),
        wide + 1,
        cpus.len(),
        alone + 1,
        again + 1,
    );
    let right = narrow < confined.len() as u32
        && wide < cpus.len() as u32
        && wide > narrow
        && (alone, again) == (0, 0);
    if right { Ok(figures) } else { Err(figures) }
}

/// Returns the largest ID of `threads` threads that all run at once, each on its CPU if there are
/// enough, and stay until all are done.
fn largest_id(counter: &Counter, cpus: &[u32], threads: usize) -> u32 {
    let meet = Barrier::new(threads);
    let work = |index: usize| {
        pinning::restrict(0, &[cpus[index % cpus.len()]]);
        meet.wait();
        let mut largest = 0;
        for _ in 0..50 {
            (0..100).for_each(|_| counter.add(1));
            largest = largest.max(Source::Table.current_id().unwrap_or(0));
            std::thread::yield_now();
        }
        meet.wait();
        largest
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|index| scope.spawn(move || work(index))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).max().unwrap_or(0)
    })
}

/// Waits until a joined thread has left the kernel's count.
fn wait_until_alone() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    while threads() > 1 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn wander_alone(counter: &Counter, cpus: &[u32]) -> u32 {
    let ids = cpus.iter().cycle().take(3 * cpus.len()).map(|&cpu| {
        pinning::restrict(0, &[cpu]);
        (0..100).for_each(|_| counter.add(1));
        Source::Table.current_id().unwrap_or(u32::MAX)
    });
    ids.max().unwrap_or(0)
}
