//! An allocator that refuses an allocation of a thread, for tests without memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Refusing;

thread_local! {
    /// Number of allocations of this thread up to the one that is refused.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

fn is_refused() -> bool {
    // A thread that ends has no `LEFT` any more.
    LEFT.try_with(|left| {
        let number = left.take();
        left.set(number.and_then(|number| number.checked_sub(1)));
        number == Some(0)
    })
    .unwrap_or_default()
}

// SAFETY: all calls are passed to the system's allocator, except for the allocations that are
// refused. Those return a null pointer, as `GlobalAlloc` permits.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused() {
            return std::ptr::null_mut();
        }
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
static ALLOCATOR: Refusing = Refusing;

/// Runs `work` and refuses its allocation of this number, from 0. Returns `None` if `work` makes
/// fewer.
pub(crate) fn refuse<R>(number: usize, work: impl FnOnce() -> R) -> Option<R> {
    LEFT.set(Some(number));
    let result = work();
    LEFT.take().is_none().then_some(result)
}

/// Runs `work` with its first allocation refused, then with its second, and so on, and calls
/// `check` with each result. Ends when `work` makes fewer allocations. Returns the number of
/// refused ones.
pub(crate) fn refuse_each<R>(mut work: impl FnMut() -> R, check: impl FnMut(R)) -> usize {
    (0..).map_while(|number| refuse(number, &mut work)).map(check).count()
}
