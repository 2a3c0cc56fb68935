//! Something that is made once and stays forever, by whichever thread is first.

use std::ptr::{self, NonNull};

use crate::sys::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// Null before. It is never replaced.
#[derive(Debug)]
pub(crate) struct Published<T> {
    pub(crate) place: AtomicPtr<T>,
}

impl<T: 'static> Published<T> {
    /// What was published. Acquire: whoever gets it sees it whole.
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or was given to `publish`.
        unsafe { self.place.load(Acquire).as_ref() }
    }

    /// Publishes `made` unless another thread was faster. Returns whether it did: if not, no other
    /// thread has seen `made`. Release: the other side of [`get`](Published::get).
    ///
    /// # Safety
    ///
    /// If it is published it stays valid forever, and is changed through shared references only.
    pub(crate) unsafe fn publish(&self, made: NonNull<T>) -> bool {
        let null = ptr::null_mut();
        self.place.compare_exchange(null, made.as_ptr(), Release, Relaxed).is_ok()
    }
}
