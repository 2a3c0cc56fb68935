//! The slab that objects are cut from.

use crate::sys::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// Null at first. Slabs stay forever.
#[derive(Debug)]
pub(super) struct Current<S> {
    pub(super) slab: AtomicPtr<S>,
}

impl<S> Current<S> {
    /// Acquire: whoever gets a slab sees it as it was made.
    pub(super) fn get(&self) -> *mut S {
        self.slab.load(Acquire)
    }

    /// Takes another one, unless another thread has done so since `seen` was loaded.
    pub(super) fn replace(&self, seen: *mut S, next: *mut S) -> bool {
        self.slab.compare_exchange(seen, next, Release, Relaxed).is_ok()
    }
}
