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

/// How many of a hundred rounds allocate: a thread that is moved comes to a CPU that has seen nothing.
fn rounds_that_allocate(mut work: impl FnMut()) -> usize {
    (0..4).for_each(|_| work());
    (0..100).filter(|_| allocations(&mut work) > 0).count()
}

#[test]
fn updates_and_lookups_do_not_allocate() {
    let family = Family::<(&str, u16), Counter>::default();
    let (gauge, classic) = (Gauge::default(), Histogram::default());
    let native = Histogram::native(3).expect("a schema");
    let recorder = PrometheusBuilder::new().build_recorder();
    let allocating = rounds_that_allocate(|| {
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
    assert!(allocating <= 10, "{allocating} of 100 rounds");
}

/// The control: what this test would notice.
#[test]
fn new_labels_do_allocate() {
    let family = Family::<u64, Counter>::default();
    let mut next = 0;
    let allocating = rounds_that_allocate(|| {
        next += 1;
        family.with(&next, Counter::inc);
    });
    assert_eq!(allocating, 100);
}
