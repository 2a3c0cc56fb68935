//! What stands in front of the value of a [`Local`](crate::Local)'s shard: see there for the
//! protocol.
//!
//! # What the orders are for
//!
//! *No two have a value*: whoever takes the lock does so by an exchange, or by a section that the
//! visitor's fence has aborted before the visitor's exchange. The exchange acquires (a taker's by the
//! barrier that follows) and the store that gives the lock back releases, so each holder sees what
//! those before it did to the value. The word that closes the shard is not needed for that.
//!
//! *A visitor waits for those who held the lock when it came, and for nobody else*: that is what
//! closing is for, and the two full barriers. A taker stores its token, then looks whether the
//! shard is closed; a visitor closes it, then looks for a token. With a barrier between the two on
//! both sides, one of them sees the other. So a visitor that finds the lock free is not overtaken
//! by a closure of whatever length, but only by a taker that gives the lock back at once. The
//! taker's first look keeps those away who come while the shard is closed: without it they could
//! keep the lock from the visitor for a moment each, one after the other.
//!
//! *A value that was taken out stays out*: sections take the lock without an exchange. A section
//! that begins behind the visitor's fence loads the word that closes the shard, then the state. If
//! it finds the shard open again, it must find the state as the visitor left it: so the store that
//! opens releases, and the section's loads stay in this order.
//!
//! Other loads need no order: what they tell is asked again by an exchange or a section.
//! `verify/loom` tries every interleaving of all of this.

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
/// There is a value whose holder will not come back: see [`left_behind`](super::left_behind).
pub(crate) const ABANDONED: i64 = -1;

/// From the state to the word that closes the shard, in bytes.
pub(crate) const CLOSED: isize = 8;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Lock {
    /// [`NONE`], [`READY`], [`ABANDONED`], or the holder's token.
    pub(crate) state: AtomicI64,
    /// Nonzero: no thread takes the lock any more.
    pub(crate) closed: AtomicU64,
}
const _: () = assert!(std::mem::offset_of!(Lock, closed) == CLOSED as usize);

impl Lock {
    /// The state, as a hint unless the shard is the caller's.
    pub(crate) fn state(&self) -> i64 {
        self.state.load(Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed) != 0
    }

    /// Takes the lock of a shard that no section works on, if its state is as expected.
    pub(crate) fn try_take(&self, expected: i64) -> bool {
        let token = thread::token() as i64;
        if self.is_closed()
            || self.state.compare_exchange(expected, token, Relaxed, Relaxed).is_err()
        {
            return false;
        }
        // With the barrier in `close`: if it was closed in between, either this is seen here, or
        // the visitor sees the token. It also makes the exchange acquire.
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
        // Release: a section that finds the shard open finds the state as it is now.
        self.closed.store(0, Release);
    }

    /// Takes the lock of a closed shard, as a visitor: waits until no thread holds it, or `has_left`
    /// says of one that was waited for that it will not release it. `false`: there is no value to
    /// be had.
    ///
    /// By an exchange: a thread that took the lock before it saw that the shard is closed is about
    /// to put back what it found, so finding the lock free is not enough.
    ///
    /// The calling thread does not hold it.
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

    /// Relaxed: the value is not touched. Should the holder be alive after all, its release comes
    /// before this, and then there is a lock to take, or after it.
    fn abandon(&self, holder: i64) {
        let _ = self.state.compare_exchange(holder, ABANDONED, Relaxed, Relaxed);
    }
}
