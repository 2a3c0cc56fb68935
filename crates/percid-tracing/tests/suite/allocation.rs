//! Events whose values are numbers, booleans and strings do not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use percid_tracing::FlightRecorder;
use tracing_subscriber::prelude::*;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls are passed to the system's allocator unchanged. Counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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

/// Returns the number of allocations in 1000 calls of `f`, after the first call.
fn allocations(f: impl Fn(u64)) -> u64 {
    f(0);
    let before = ALLOCATIONS.get();
    (0..1000).for_each(f);
    ALLOCATIONS.get() - before
}

#[test]
fn events_with_plain_values_allocate_nothing() {
    let (layer, _recorder) = FlightRecorder::builder().bytes_per_cpu(8 << 10).build();
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("span", id = 17);
        let _entered = span.enter();
        let plain = |number| {
            tracing::info!(number, half = 0.5, yes = true, text = "text", "event {number}");
        };
        assert_eq!(allocations(plain), 0);
        assert_eq!(allocations(|_| span.in_scope(|| ())), 0);
        // Negative control: an allocation is counted.
        let allocating = |number: u64| tracing::info!(text = number.to_string(), "event");
        assert_eq!(allocations(allocating), 1000);
    });
}
