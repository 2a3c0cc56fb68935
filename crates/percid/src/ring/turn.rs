//! Whose turn it is to consume: one consumer at a time, and none of the parent's.
//!
//! The lock's word is the generation (see [`holder`]) of the process in which the consumer was made,
//! and not its thread: a consumer may be moved to another thread, which goes on when the first has
//! ended. So a child of `fork` takes the place of a consumer that its parent had, whether a thread
//! of the parent was using it, which the child does not have, or the one that forked.

use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::{holder, race_detector};

#[derive(Debug)]
pub(crate) struct Turn {
    /// 0: no consumer; else one more than the generation of its process.
    pub(crate) taken: AtomicU64,
}

impl Turn {
    /// Takes the place, unless this process has a consumer.
    pub(crate) fn take(&self) -> Option<TurnGuard<'_>> {
        let own = u64::from(holder::generation()) + 1;
        let taken = self.taken.load(Relaxed);
        if taken == own {
            return None;
        }
        // Acquire: what the consumer before has left of the ring; a parent's is a copy.
        self.taken.compare_exchange(taken, own, Acquire, Relaxed).ok()?;
        race_detector::acquire(std::ptr::from_ref(self).addr());
        Some(TurnGuard { turn: self, own })
    }
}

/// The place, taken; free again when dropped.
#[derive(Debug)]
pub(crate) struct TurnGuard<'t> {
    turn: &'t Turn,
    own: u64,
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        race_detector::release(std::ptr::from_ref(self.turn).addr());
        // If another consumer has taken the place in a child, which goes on with the parent's, it
        // keeps it.
        let _ = self.turn.taken.compare_exchange(self.own, 0, Release, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_consumes_at_a_time_and_a_child_takes_the_place() {
        let turn = Turn { taken: AtomicU64::new(0) };
        let ours = turn.take().expect("nobody consumes");
        assert!(turn.take().is_none());
        drop(ours);
        let ours = turn.take().expect("free again");
        // As a child finds it: taken by another process.
        turn.taken.store(ours.own + 1, Relaxed);
        let theirs = turn.take().expect("no thread of this process has it");
        drop(theirs);
        assert_eq!(turn.taken.load(Relaxed), 0);
        // The parent's consumer, with which the child goes on, does not give away the child's.
        let other = TurnGuard { turn: &turn, own: ours.own + 1 };
        let theirs = turn.take().expect("free again");
        drop(other);
        assert!(turn.take().is_none());
        drop((theirs, ours));
    }
}
