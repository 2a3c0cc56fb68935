//! What stands in front of the value of a [`Local`](crate::Local)'s shard: see there for the
//! protocol.

use crate::backoff::Backoff;
use crate::sys::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use crate::sys::thread;

/// There is no value.
pub(crate) const NONE: i64 = 0;
/// There is a value that no thread uses.
pub(crate) const READY: i64 = 1;

/// From the state to the word that closes the shard, in bytes.
pub(crate) const CLOSED: isize = 8;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Lock {
    /// [`NONE`], [`READY`], or the holder's token.
    pub(crate) state: AtomicI64,
    /// Nonzero: no thread takes the lock any more.
    pub(crate) closed: AtomicU64,
}
const _: () = assert!(std::mem::offset_of!(Lock, closed) == CLOSED as usize);

impl Lock {
    pub(crate) fn state(&self) -> i64 {
        self.state.load(Acquire)
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: a thread that finds a shard open again sees what the visitor did to it.
        self.closed.load(Acquire) != 0
    }

    /// Takes the lock of a shard that no section works on, if its state is as expected.
    pub(crate) fn try_take(&self, expected: i64) -> bool {
        let token = thread::token() as i64;
        if self.is_closed()
            || self.state.compare_exchange(expected, token, Acquire, Relaxed).is_err()
        {
            return false;
        }
        // With the barrier in `close`: if it was closed in between, either this is seen here, or
        // the visitor sees the token.
        fence(SeqCst);
        let closed = self.is_closed();
        if closed {
            self.release(expected);
        }
        !closed
    }

    /// Takes the lock of a shard that no other thread knows.
    pub(crate) fn take_fresh(&self) {
        self.state.store(thread::token() as i64, Relaxed);
    }

    /// Gives the lock back.
    #[inline(always)]
    pub(crate) fn release(&self, state: i64) {
        self.state.store(state, Release);
    }

    /// Closes the shard; what is read of the state afterwards is what it is from then on, except
    /// that a holder releases it. Where sections take the lock, that is so after
    /// [`fence::all`](crate::id::fence::all).
    pub(crate) fn close(&self) {
        self.closed.store(1, Relaxed);
        fence(SeqCst);
    }

    pub(crate) fn open(&self) {
        self.closed.store(0, Release);
    }

    /// Takes the lock of a closed shard, as a visitor: waits until no thread holds it. `false`:
    /// there is no value.
    ///
    /// By an exchange: a thread that took the lock before it saw that the shard is closed is about
    /// to put back what it found, so finding the lock free is not enough.
    ///
    /// # Panics
    ///
    /// If the calling thread holds it.
    pub(crate) fn take_closed(&self) -> bool {
        let token = thread::token() as i64;
        let mut backoff = Backoff::default();
        loop {
            let state = self.state();
            assert!(
                state != token,
                "percid::Local: a visit inside `with` of the same object would wait for itself"
            );
            let taken = || self.state.compare_exchange(READY, token, Acquire, Relaxed).is_ok();
            match state {
                NONE => return false,
                READY if taken() => return true,
                _ => backoff.wait(),
            }
        }
    }
}
