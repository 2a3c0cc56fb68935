//! The cost of a pool on a machine that may have many CPUs: the time to make one, and its memory,
//! which must exist only for IDs that used it.

use std::time::Instant;

use percid::{Pool, Source, testing};

use crate::memory::resident_kib;
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

/// Pools that are made to see what one costs.
const POOLS: usize = 1000;

/// The capacity of each: a part takes a page.
const CAPACITY: u32 = 511;

pub(crate) fn run(options: &Options) -> Verdict {
    testing::pretend_possible_cpus(options.possible);
    let source = options.source.unwrap_or(percid::init().source);
    pinning::restrict(0, &pinning::allowed()[..1]);
    let make = || Pool::with_source(source, || [0u64; 8], CAPACITY);

    // The very first one reserves the arena and registers for the fence.
    let start = Instant::now();
    let first = make().map_err(|error| error.to_string())?;
    let first_us = start.elapsed().as_nanos() as f64 / 1000.0;

    let mut pools = Vec::with_capacity(POOLS);
    let before = resident_kib()?;
    let mut slowest_us = 0.0f64;
    let all = Instant::now();
    for _ in 0..POOLS {
        let start = Instant::now();
        pools.push(make().map_err(|error| error.to_string())?);
        slowest_us = slowest_us.max(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    let create_us = all.elapsed().as_nanos() as f64 / 1000.0 / POOLS as f64;
    let idle = resident_kib()? - before;
    // One CPU uses every pool once: one object each, and one page of one ID.
    pools.iter().for_each(|pool| drop(pool.get()));
    let used = resident_kib()? - before - idle;
    let freed: usize = pools.iter().map(Pool::drain).sum();
    drop((pools, first));

    let ids = source.id_count();
    let figures = format!(
        "source={source} possible={} ids={ids} first_us={first_us:.1} create_us={create_us:.2} \
         slowest_us={slowest_us:.1} idle={idle} KiB, used={used} KiB for {POOLS} pools, freed={freed}",
        options.possible
    );
    // The handles, and a little for the allocator.
    let handles = POOLS * size_of::<Pool<[u64; 8]>>() / 1024 + 64;
    // A page for the copy and an object of 64 bytes; twice that for what comes in between.
    let copies = POOLS * 2 * (4 + 1);
    let hints = source == Source::Atomic;
    let right = idle <= handles && used <= copies && freed == POOLS && (ids == 1 || hints);
    if right { Ok(figures) } else { Err(figures) }
}
