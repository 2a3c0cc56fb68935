//! The lock of a ring's consumer: one consumer at a time per process.
//!
//! The lock's word is derived from the generation (see [`holder`]) of the process in which the
//! consumer was made, and not from its thread: a consumer may be moved to another thread, which
//! continues when the first has ended. So a child of `fork` can replace a consumer of its parent. A
//! thread of the parent that does not exist in the child may have been using it, or the thread that
//! forked.

use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::{holder, race_detector};

#[derive(Debug)]
pub(crate) struct Turn {
    /// 0 if there is no consumer; otherwise one more than the generation of its process.
    pub(crate) taken: AtomicU64,
}

impl Turn {
    /// Takes the lock, unless this process has a consumer.
    pub(crate) fn take(&self) -> Option<TurnGuard<'_>> {
        let own = u64::from(holder::generation()) + 1;
        let taken = self.taken.load(Relaxed);
        if taken == own {
            return None;
        }
        // Acquire: this consumer sees the ring as the previous one left it; a parent's consumer is
        // a copy.
        self.taken.compare_exchange(taken, own, Acquire, Relaxed).ok()?;
        race_detector::acquire(std::ptr::from_ref(self).addr());
        Some(TurnGuard { turn: self, own })
    }
}

/// A guard of the lock, which is released when the guard is dropped.
#[derive(Debug)]
pub(crate) struct TurnGuard<'t> {
    turn: &'t Turn,
    own: u64,
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        race_detector::release(std::ptr::from_ref(self.turn).addr());
        // If another consumer has taken the lock in a child that continues with the parent's
        // consumer, it keeps the lock.
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
        // The state in a child: taken by another process.
        turn.taken.store(ours.own + 1, Relaxed);
        let theirs = turn.take().expect("no thread of this process has it");
        drop(theirs);
        assert_eq!(turn.taken.load(Relaxed), 0);
        // Dropping the parent's consumer, with which the child continues, does not release the
        // child's.
        let other = TurnGuard { turn: &turn, own: ours.own + 1 };
        let theirs = turn.take().expect("free again");
        drop(other);
        assert!(turn.take().is_none());
        drop((theirs, ours));
    }
}
