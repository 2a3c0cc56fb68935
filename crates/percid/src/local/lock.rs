//! The lock in front of the value in a shard of [`Local`](crate::Local): the protocol is described
//! there.
//!
//! # Purpose of the memory orders
//!
//! *No two threads have the same value*. A thread takes the lock by an exchange, or by a section
//! that the visitor's fence has aborted before the visitor's exchange. The exchange acquires (that
//! of a taker by the barrier that follows), and the store that releases the lock has release order.
//! So each holder sees the changes of the earlier holders to the value. The word that closes the
//! shard is not needed for that.
//!
//! *A visitor waits for the threads that held the lock when it arrived, and for no other*. Closing
//! and the two full barriers ensure that. A taker stores its token, then loads the word that closes
//! the shard; a visitor stores that word, then loads the token. With a barrier between the two on
//! both sides, at least one of them sees the other's store. So if a visitor finds the lock free, no
//! closure of any length can precede it, but only a taker that releases the lock at once. The
//! taker's first check turns away threads that arrive while the shard is closed: otherwise they
//! could keep the lock from the visitor for a moment each, one after the other.
//!
//! *A value that was taken out stays out*. Sections take the lock without an exchange. A section
//! that begins behind the visitor's fence loads the word that closes the shard, then the state. If
//! it finds the shard open again, it must find the state as the visitor left it. So the store that
//! opens has release order, and the section's loads stay in this order.
//!
//! Other loads need no order: an exchange or a section checks their results again. `verify/loom`
//! tests every interleaving of all of this.

use crate::backoff::Backoff;
use crate::sys::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use crate::sys::thread;

/// The state of a shard without a value.
pub(crate) const NONE: i64 = 0;
/// The state of a shard with a value that no thread uses.
pub(crate) const READY: i64 = 1;
/// The state of a shard whose value's holder will not return: see
/// [`left_behind`](super::left_behind).
pub(crate) const ABANDONED: i64 = -1;

/// Offset from the state to the word that closes the shard, in bytes.
pub(crate) const CLOSED: isize = 8;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Lock {
    /// [`NONE`], [`READY`], [`ABANDONED`], or the holder's token.
    pub(crate) state: AtomicI64,
    /// Nonzero if no thread may take the lock any more.
    pub(crate) closed: AtomicU64,
}
const _: () = assert!(std::mem::offset_of!(Lock, closed) == CLOSED as usize);

impl Lock {
    /// Returns the state, as a hint unless the caller owns the shard.
    pub(crate) fn state(&self) -> i64 {
        self.state.load(Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed) != 0
    }

    /// Takes the lock of a shard that no section works on, if its state is as expected. Returns
    /// `true` if it did.
    pub(crate) fn try_take(&self, expected: i64) -> bool {
        let token = thread::token() as i64;
        if self.is_closed()
            || self.state.compare_exchange(expected, token, Relaxed, Relaxed).is_err()
        {
            return false;
        }
        // Pairs with the barrier in `close`: if the shard was closed in between, either this thread
        // sees that here, or the visitor sees the token. It also makes the exchange acquire.
        fence(SeqCst);
        let closed = self.is_closed();
        if closed {
            self.release(expected);
        }
        !closed
    }

    /// Takes the lock of a shard that no other thread has access to.
    pub(crate) fn take_fresh(&self) {
        self.state.store(thread::token() as i64, Relaxed);
    }

    /// Releases the lock.
    #[inline(always)]
    pub(crate) fn release(&self, state: i64) {
        self.state.store(state, Release);
    }

    /// Closes the shard. From then on only a holder changes the state, by releasing the lock, apart
    /// from takers that find the shard closed and release the lock at once. If sections take the
    /// lock, that is so only after [`fence::all`](crate::id::fence::all).
    pub(crate) fn close(&self) {
        self.closed.store(1, Relaxed);
        fence(SeqCst);
    }

    pub(crate) fn open(&self) {
        // Release: a section that finds the shard open finds the current state.
        self.closed.store(0, Release);
    }

    /// Takes the lock of a closed shard, as a visitor. Waits until no thread holds it, or until
    /// `has_left` returns `true` for a holder: it will not release the lock. Returns `false` if no
    /// value is available.
    ///
    /// It takes the lock by an exchange: a thread that took the lock before it saw that the shard
    /// is closed is about to restore the state that it found. So finding the lock free is not
    /// enough.
    ///
    /// The calling thread must not hold it.
    pub(crate) fn take_closed(&self, has_left: impl Fn(&Backoff) -> bool) -> bool {
        let token = thread::token() as i64;
        let mut backoff = Backoff::default();
        loop {
            let taken = || self.state.compare_exchange(READY, token, Acquire, Relaxed).is_ok();
            match self.state() {
                NONE | ABANDONED => return false,
                READY if taken() => return true,
                holder if holder != READY && has_left(&backoff) => self.abandon(holder),
                _ => backoff.wait(),
            }
        }
    }

    /// Abandons the shard. Relaxed: the value is not touched. If the holder is alive after all, its
    /// release comes before this, and then the lock can be taken, or after it.
    fn abandon(&self, holder: i64) {
        let _ = self.state.compare_exchange(holder, ABANDONED, Relaxed, Relaxed);
    }
}
