//! A value that is made once, by the first thread, and stays forever.

use std::ptr::{self, NonNull};

use crate::sys::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// A pointer to the value; null before it is published. It is never replaced.
#[derive(Debug)]
pub(crate) struct Published<T> {
    pub(crate) place: AtomicPtr<T>,
}

impl<T: 'static> Published<T> {
    /// Returns the published value. Acquire: a thread that gets it sees all of it.
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or was passed to `publish`, so it stays valid forever.
        unsafe { self.place.load(Acquire).as_ref() }
    }

    /// Publishes `made` unless another thread was faster. Returns `true` if it did: if not, no
    /// other thread has seen `made`. Release: pairs with the acquire load in
    /// [`get`](Published::get).
    ///
    /// # Safety
    ///
    /// If `made` is published, it must stay valid forever and be changed through shared references
    /// only.
    pub(crate) unsafe fn publish(&self, made: NonNull<T>) -> bool {
        let null = ptr::null_mut();
        self.place.compare_exchange(null, made.as_ptr(), Release, Relaxed).is_ok()
    }
}
