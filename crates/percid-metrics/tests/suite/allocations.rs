//! What was seen before by this CPU is found without an allocation.
#![cfg(feature = "recorder")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use metrics::{counter, histogram, with_local_recorder};
use percid_metrics::{Counter, Family, Gauge, Histogram, PrometheusBuilder};

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: by contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// `true` if a hundred rounds in a row allocate nothing, at last.
///
/// A thread that is moved comes to a CPU that has seen nothing. There each of the fewer than 200
/// lookups of a round may allocate once: it is over after so many rounds, whenever it is moved.
fn settles(mut work: impl FnMut()) -> bool {
    let most = 200 * (1 + std::thread::available_parallelism().map_or(1, usize::from));
    let (mut quiet, mut allocating) = (0, 0);
    while quiet < 100 && allocating <= most {
        if allocations(&mut work) > 0 {
            (quiet, allocating) = (0, allocating + 1);
        } else {
            quiet += 1;
        }
    }
    quiet == 100
}

#[test]
fn updates_and_lookups_do_not_allocate() {
    let family = Family::<(&str, u16), Counter>::default();
    let (gauge, classic) = (Gauge::default(), Histogram::default());
    let native = Histogram::native(3).expect("a schema");
    let recorder = PrometheusBuilder::new().build_recorder();
    let has_settled = settles(|| {
        for status in 200..264 {
            family.with(&("/index", status), Counter::inc);
            family.get_or_create(&("/index", status)).inc();
        }
        gauge.inc();
        gauge.set(7.0);
        classic.observe(0.3);
        native.observe(0.3);
        with_local_recorder(&recorder, || {
            counter!("requests_total", "path" => "/index").increment(1);
            histogram!("seconds").record(0.25);
        });
    });
    assert!(has_settled);
}

/// The control: what this test would notice.
#[test]
fn new_labels_do_allocate() {
    let family = Family::<u64, Counter>::default();
    let mut next = 0;
    let has_settled = settles(|| {
        next += 1;
        family.with(&next, Counter::inc);
    });
    assert!(!has_settled);
}
