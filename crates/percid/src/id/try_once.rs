//! A value that one thread decides once, without any thread waiting for it.

use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::cell::UnsafeCell;

/// The state of a decided value. No thread has this number (see [`holder`](crate::sys::holder)):
/// the kernel keeps its part of it below 2^22.
const DECIDED: u64 = u64::MAX;

/// The value and its state: 0 at first, the number of the deciding thread while one is deciding,
/// and [`DECIDED`] from then on.
#[derive(Debug)]
pub(crate) struct TryOnce<T> {
    pub(crate) state: AtomicU64,
    pub(crate) value: UnsafeCell<Option<T>>,
}

// SAFETY: only one thread writes the value, before it stores `DECIDED`: the thread that changed
// `state` to its own number, from 0 or from the number of a thread that no longer exists. The value
// is read only by threads that have read `DECIDED`.
unsafe impl<T: Copy + Send + Sync> Sync for TryOnce<T> {}

impl<T: Copy> TryOnce<T> {
    /// Returns the value, which is decided now unless it was before. Returns `None` while another
    /// thread, or the code that this signal handler interrupted, is deciding, and if `decide`
    /// cannot decide yet.
    ///
    /// `me` is the calling thread's number. `exists` returns `true` if this process has a thread of
    /// that number: the deciding thread does not exist here if this is the child of a fork that
    /// happened during its decision.
    pub(crate) fn get_or_decide(
        &self,
        me: impl FnOnce() -> u64,
        exists: impl FnOnce(u64) -> bool,
        decide: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        // One load: with two of them, a state that is decided in between would count as abandoned.
        let state = self.state.load(Acquire);
        if state == DECIDED {
            return self.get();
        }
        let me = me();
        // Relaxed, here and where deciding is given up: the next deciding thread reads no value of
        // an earlier one.
        let abandoned = state == 0 || (state != me && !exists(state));
        if !abandoned || self.state.compare_exchange(state, me, Relaxed, Relaxed).is_err() {
            return self.get();
        }
        let Some(value) = decide() else {
            self.state.store(0, Relaxed);
            return None;
        };
        // SAFETY: only this thread may write, from its exchange until it stores `DECIDED`.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        self.state.store(DECIDED, Release);
        Some(value)
    }

    /// Returns the value, if it has been decided.
    pub(crate) fn get(&self) -> Option<T> {
        if self.state.load(Acquire) != DECIDED {
            return None;
        }
        // SAFETY: the value was written before `DECIDED` was stored, and is never written again.
        self.value.with(|place| unsafe { *place })
    }
}
