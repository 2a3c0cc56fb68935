//! The slab that objects are currently allocated from.

use crate::sys::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// The pointer to the slab; null at first. Slabs exist forever.
#[derive(Debug)]
pub(super) struct Current<S> {
    pub(super) slab: AtomicPtr<S>,
}

impl<S> Current<S> {
    /// Returns the slab. Acquire: a thread that gets a slab sees it completely initialised.
    pub(super) fn get(&self) -> *mut S {
        self.slab.load(Acquire)
    }

    /// Stores another slab, unless another thread has done so since `seen` was loaded.
    pub(super) fn replace(&self, seen: *mut S, next: *mut S) -> bool {
        self.slab.compare_exchange(seen, next, Release, Relaxed).is_ok()
    }
}
