//! Lookups of label sets that this CPU has used before do not allocate.
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

// SAFETY: all calls are passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's obligations are the same as those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `alloc` got `pointer` from the system's allocator, and the caller passes its
        // layout.
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

/// Returns `true` if eventually a hundred rounds in a row allocate nothing.
///
/// A thread may migrate to a CPU that has used nothing yet. There, each of the fewer than 200
/// lookups of a round may allocate once. So the number of allocating rounds is bounded, for any
/// migrations.
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

/// Negative control: the test detects allocations.
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
