//! percid's own memory as regions, on two pretended nodes.

use std::alloc::Layout;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use percid::pool::RawPool;
use percid::{Counter, Source};
use percid_numa::{Balancer, IdRegions, Settings};

/// Longer than a thread fails to keep its ID for some milliseconds, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Makes a balancer that scans at once.
fn balancer() -> Balancer {
    percid_numa::testing::pretend_nodes(2);
    let settings = Settings { scan_delay: Duration::from_nanos(1), ..Settings::default() };
    Balancer::builder().settings(settings).build().expect("good settings")
}

/// Accesses that the balancer has seen.
fn seen(balancer: &Balancer) -> u64 {
    balancer.report().regions.iter().map(|region| region.local + region.remote).sum()
}

/// Returns `true` if a pass arms the pages of an ID, and the next touch by the thread with the ID
/// is detected. It may not be if the thread got another ID in between, which the kernel may assign
/// with every turn on a CPU, or if it did without one: that ID may have no memory in the arena.
fn own_pages_are_seen(source: Source) -> bool {
    let counters: Vec<Counter> =
        (0..2000).map(|_| Counter::with_source(source).expect("an available source")).collect();
    counters.iter().for_each(|counter| counter.add(1));
    let balancer = balancer();
    let ids: IdRegions = balancer.register_ids(source).expect("memory of percid's own");
    // `None` while another thread, which is preempted, is assigning the table's IDs.
    let Some(mine) = source.current_id() else { return false };
    let registered = !ids.of_id(mine).is_empty();
    assert!(ids.of_id(source.id_count() + 1).is_empty());
    ids.touch();
    assert_eq!(seen(&balancer), 0, "nothing is armed yet");
    let armed = balancer.pass().armed;
    let all_armed = armed >= 2000 * 8 / 4096;
    ids.touch();
    counters.iter().for_each(|counter| counter.add(1));
    assert!(counters.iter().all(|counter| counter.sum() == 2));
    registered && all_armed && seen(&balancer) > 0
}

#[test]
fn what_an_id_has_in_the_arena_is_seen_when_its_thread_says_so() {
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let end = Instant::now() + PATIENCE;
        while !own_pages_are_seen(source) {
            assert!(Instant::now() < end, "{source:?}: never");
        }
    }
}

#[test]
fn slabs_of_a_pool_are_regions() {
    let layout = Layout::from_size_align(4000, 8).expect("a layout");
    let pool = RawPool::new(layout, 16);
    let objects: Vec<_> = (0..200).map(|_| pool.get().expect("memory")).collect();
    // SAFETY: objects of this size, which nothing else uses.
    objects.iter().for_each(|object| unsafe { object.as_ptr().write_bytes(1, layout.size()) });
    let balancer = balancer();
    let regions = balancer.register_pool(&pool).expect("memory of percid's own");
    let of_object = |address: usize| {
        regions.iter().find(|region| region.range().contains(&address)).expect("a region")
    };
    let addresses = || objects.iter().map(|object| object.as_ptr().addr());
    let pages: BTreeSet<usize> = addresses().map(|address| address / 4096).collect();
    let armed = balancer.pass().armed;
    assert!(armed >= pages.len() as u64, "{armed} of {}", pages.len());
    addresses().for_each(|address| {
        let region = of_object(address);
        region.touch(address - region.range().start);
    });
    assert_eq!(seen(&balancer), pages.len() as u64, "each page once");
    // SAFETY: from this pool, and not used any more.
    objects.iter().for_each(|object| unsafe { pool.put(*object) }.expect("an object of this pool"));
    drop(pool);
    balancer.pass();
}
