//! An allocator that refuses an allocation of a thread, for tests of what happens without memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Refusing;

thread_local! {
    /// Number of allocations of this thread up to the one that is refused.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

fn is_refused() -> bool {
    // A thread that ends has no number any more.
    LEFT.try_with(|left| {
        let number = left.take();
        left.set(number.and_then(|number| number.checked_sub(1)));
        number == Some(0)
    })
    .unwrap_or_default()
}

// SAFETY: all is left to the system's allocator, but for the allocations that are refused.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused() {
            return std::ptr::null_mut();
        }
        // SAFETY: what the caller promises is what the system's allocator wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Does `work` with its allocation of this number refused. `None` if it has not so many.
pub(crate) fn refuse<R>(number: usize, work: impl FnOnce() -> R) -> Option<R> {
    LEFT.set(Some(number));
    let result = work();
    LEFT.take().is_none().then_some(result)
}

/// Does `work` with its first allocation refused, then with its second, and so on, as long as it has so
/// many, and hands each result to `check`. Returns how many were refused.
pub(crate) fn refuse_each<R>(mut work: impl FnMut() -> R, check: impl FnMut(R)) -> usize {
    (0..).map_while(|number| refuse(number, &mut work)).map(check).count()
}
