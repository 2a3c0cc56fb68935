//! A value that one thread decides once, and for which no thread waits.

use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::cell::UnsafeCell;

/// No thread has this number (see [`holder`](crate::sys::holder)): the kernel keeps its part of it
/// below 2^22.
const DECIDED: u64 = u64::MAX;

/// The value and its state: 0 at first, the number of the deciding thread while one is deciding,
/// and [`DECIDED`] from then on.
#[derive(Debug)]
pub(crate) struct TryOnce<T> {
    pub(crate) state: AtomicU64,
    pub(crate) value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written by the one thread that moved `state` from 0 (or from the number of a
// thread that no longer exists) to its own number, before it stores `DECIDED`; and read only by
// those who have seen that.
unsafe impl<T: Copy + Send + Sync> Sync for TryOnce<T> {}

impl<T: Copy> TryOnce<T> {
    /// The value, decided now unless it was before; `None` while another thread, or the code that
    /// this signal handler interrupted, is at it, and if `decide` cannot decide yet.
    ///
    /// `me` is the calling thread's number, and `exists` tells whether this process has a thread of
    /// that number: the deciding one does not if this is the child of a fork that happened
    /// meanwhile.
    pub(crate) fn get_or_decide(
        &self,
        me: impl FnOnce() -> u64,
        exists: impl FnOnce(u64) -> bool,
        decide: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        // One load: a state that is decided between two of them would be taken for an abandoned
        // one.
        let state = self.state.load(Acquire);
        if state == DECIDED {
            return self.get();
        }
        let me = me();
        // Relaxed, here and where it is given up: who takes over gets no value from those before.
        let abandoned = state == 0 || (state != me && !exists(state));
        if !abandoned || self.state.compare_exchange(state, me, Relaxed, Relaxed).is_err() {
            return self.get();
        }
        let Some(value) = decide() else {
            self.state.store(0, Relaxed);
            return None;
        };
        // SAFETY: this thread has the right to write, from its exchange until it stores `DECIDED`.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        self.state.store(DECIDED, Release);
        Some(value)
    }

    /// The value, if it has been decided.
    pub(crate) fn get(&self) -> Option<T> {
        if self.state.load(Acquire) != DECIDED {
            return None;
        }
        // SAFETY: the value was written before `DECIDED` was stored, and is never written again.
        self.value.with(|place| unsafe { *place })
    }
}
