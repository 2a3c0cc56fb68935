//! The allocator of this test program counts the bytes that each thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator.
struct Counting;

/// Bytes of one thread. Memory that it frees for another thread makes `held` negative.
#[derive(Clone, Copy)]
struct Bytes {
    held: isize,
    peak: isize,
}

thread_local! {
    static BYTES: Cell<Bytes> = const { Cell::new(Bytes { held: 0, peak: 0 }) };
}

fn add(bytes: isize) {
    // A thread that is ending has no count any more.
    let _ = BYTES.try_with(|count| {
        let Bytes { held, peak } = count.get();
        let held = held + bytes;
        count.set(Bytes { held, peak: peak.max(held) });
    });
}

// SAFETY: All calls go to the system's allocator unchanged; counting touches no memory that is
// handed out, and allocates nothing: the thread-local value is constant and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size().cast_signed());
        // SAFETY: The caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-layout.size().cast_signed());
        // SAFETY: The caller passes a pointer from `alloc` with its layout, and `alloc` takes all
        // memory from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the result of some work, and the most bytes that this thread held at once for it.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = BYTES.get().held;
    BYTES.set(Bytes { held: before, peak: before });
    let made = work();
    (made, (BYTES.get().peak - before).unsigned_abs())
}
