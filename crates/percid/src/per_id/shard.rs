//! A shard: its state and its value, and the guards of the threads that hold it.
//!
//! # A shard's memory
//!
//! Word 0 is the *state*: 0 if there is no value, [`READY`] if there is one that no
//! thread holds, the negative token of the thread that makes the value, or the token of the thread
//! that holds the shard. The value follows.
//!
//! # Proof of exclusion
//!
//! *Sections exclude each other*: a shard's ID belongs to one CPU at a time (see
//! [`critical`](crate::critical)), and a section that another thread of this CPU interrupts is
//! aborted.
//!
//! *Sections and holders.* A section works on a ready shard only, and never writes the state. A
//! visitor changes the state from ready to its token, by an exchange, and fences all CPUs before it
//! touches the value. A section that found the shard ready has committed or been aborted when the
//! fence returns; one that starts later leaves. So no section commits while the visitor holds the
//! shard. Its store of ready releases, and the load of a section acquires: sections see what the
//! visitor did. With sections, no other thread holds an ID's shard: operations whose section cannot
//! be done work on an extra shard.
//!
//! *The first value.* The section `acquire` changes the state from 0 to the negative token, for the
//! ID of the running thread. Nothing else changes that state, and visitors leave it alone; so its
//! plain store overwrites nothing. When the value is made, its maker stores ready.
//!
//! *Extra shards, and all shards of the atomic source* have no sections: every thread holds them by
//! an exchange of the state, does the operation, and stores ready.
//!
//! *A value is never lent mutably*. Readers of other threads may look at any time. They see fields
//! that change, which is why operations take only fields that are atomics.
//!
//! A thread holds at most one shard during an operation, for a few instructions in which it waits
//! for nothing. A signal handler that interrupts them works on another extra shard. So no operation
//! waits. Extra shards are never removed; there are at most as many as operations were ever in this
//! state at once.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

use crate::critical::words::READY as READY_WORD;
use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::{race_detector, thread};

/// The state of a shard without a value.
pub(super) const NONE: i64 = 0;
/// The state of a shard with a value that no thread holds. All other positive states are the
/// tokens of threads that hold it, the negative ones those of threads that make its value.
pub(super) const READY: i64 = READY_WORD;

/// A shard: the value of an ID, or of the threads that have no ID.
#[repr(C)]
pub(super) struct Shard<T> {
    state: AtomicI64,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A shard that belongs to no ID, at the start of a mapping. The shard is last, because its size
/// may be known to the object only.
#[repr(C)]
pub(super) struct Extra<T> {
    pub(super) link: Link<T>,
    pub(super) shard: Shard<T>,
}

/// The part before the shard, which is aligned as the shard of an ID is.
#[repr(C, align(64))]
pub(super) struct Link<T> {
    pub(super) next: *mut Extra<T>,
}

impl<T> Extra<T> {
    /// Returns the size of an extra whose shard has `bytes` bytes.
    pub(super) const fn bytes(bytes: usize) -> usize {
        std::mem::offset_of!(Extra<T>, shard) + bytes
    }
}

impl<T> Shard<T> {
    /// The offset of the value.
    pub(super) const VALUE: usize = std::mem::offset_of!(Shard<T>, value);

    pub(super) fn state(&self) -> i64 {
        self.state.load(Relaxed)
    }

    /// Returns the state. The caller sees the last holder's stores if that has released the shard.
    pub(super) fn state_acquired(&self) -> i64 {
        self.state.load(Acquire)
    }

    /// Returns the value, if there is one.
    pub(super) fn value(&self) -> Option<&T> {
        // Acquire: the value is seen as it was made.
        let made = self.state.load(Acquire) > NONE;
        // SAFETY: there is a value, and it stays as long as the shard is borrowed.
        made.then(|| unsafe { self.value_unchecked() })
    }

    /// Returns the value of a shard that is known to have one.
    ///
    /// # Safety
    ///
    /// It has one.
    #[inline(always)]
    pub(super) unsafe fn value_unchecked(&self) -> &T {
        // SAFETY: the caller guarantees that there is a value.
        unsafe { (*self.value.get()).assume_init_ref() }
    }

    /// Holds the shard, if no other thread does and there is a value. Sections of its ID may still
    /// be in flight.
    pub(super) fn try_hold(&self) -> Option<Hold<'_, T>> {
        let token = thread::token() as i64;
        // Acquire: this thread sees what the last holder did.
        self.state.compare_exchange(READY, token, Acquire, Relaxed).ok()?;
        race_detector::acquire(self.key());
        Some(Hold { shard: self, block: None })
    }

    /// Begins to make the value of a shard that no section works on. Returns `false` if another
    /// thread has begun.
    pub(super) fn try_make(&self) -> bool {
        self.state.compare_exchange(NONE, making(), Relaxed, Relaxed).is_ok()
    }

    /// Makes the value, as the thread whose [`making`] is the state, by a function that writes it to
    /// the address. If that panics there is no value, as before.
    pub(super) fn fill(&self, make: impl FnOnce(*mut T)) {
        struct Making<'s>(&'s AtomicI64, i64);
        impl Drop for Making<'_> {
            fn drop(&mut self) {
                self.0.store(self.1, Release);
            }
        }
        let mut end = Making(&self.state, NONE);
        make(self.value.get().cast());
        race_detector::release(self.key());
        end.1 = READY;
    }

    /// Drops the value, if there is one. In a child of `fork`, a value is left alone if another
    /// thread of the parent was making it.
    ///
    /// # Safety
    ///
    /// No other thread uses the shard, and it is not used any more.
    pub(super) unsafe fn drop_value(&self) {
        if self.value().is_some() {
            // SAFETY: there is a value, and the caller guarantees that no other thread uses it.
            unsafe { (*self.value.get()).assume_init_drop() };
        }
    }

    // #[gamma::skip(reason = "of detectors: the tests of percid-capi run under each")]
    fn key(&self) -> usize {
        std::ptr::from_ref(&self.state).addr()
    }
}

/// Returns the shard at an address.
///
/// # Safety
///
/// It is the address of a shard of `T` in a block whose object outlives the result. Its memory is
/// open: it was zero at first, which is a shard without a value.
pub(super) unsafe fn shard_at<'p, T>(address: usize) -> &'p Shard<T> {
    // SAFETY: the caller's obligation.
    unsafe { &*std::ptr::with_exposed_provenance(address) }
}

/// Returns the state of a shard whose value the calling thread is making.
pub(super) fn making() -> i64 {
    -(thread::token() as i64)
}

/// A shard that the calling thread holds until this is dropped.
pub(super) struct Hold<'s, T> {
    pub(super) shard: &'s Shard<T>,
    /// The block that the sections on this shard announce to race detectors, if it is an ID's.
    block: Option<usize>,
}

impl<T> Hold<'_, T> {
    /// Announces to race detectors that the thread sees what sections on the shard of this block
    /// did, and that later ones will see what it does.
    pub(super) fn announce(&mut self, block: usize) {
        race_detector::acquire(block);
        self.block = Some(block);
    }
}

impl<T> Drop for Hold<'_, T> {
    fn drop(&mut self) {
        race_detector::release(self.shard.key());
        if let Some(block) = self.block {
            race_detector::release(block);
        }
        self.shard.state.store(READY, Release);
    }
}

/// A value that a [`Visit`](super::Visit) has taken away from its ID, until this is dropped: no
/// operation changes it.
///
/// ```
/// let words = percid::PerId::new(|| percid::per_id::Word::new(1));
/// words.add(percid::per_id::Field::whole(), 1)?;
/// for word in words.visit() {
///     println!("ID {:?} had {}", word.id(), word.load());
///     word.store(0);
/// }
/// # Ok::<(), percid::per_id::NoMemory>(())
/// ```
pub struct Held<'p, T> {
    pub(super) hold: Hold<'p, T>,
    pub(super) id: Option<u32>,
    /// Only the thread that holds a shard recognises it as its own.
    pub(super) thread: PhantomData<*mut ()>,
}

impl<T> Held<'_, T> {
    /// Returns the ID of the value; `None` if it belongs to no ID.
    ///
    /// ```
    /// let words = percid::PerId::new(|| percid::per_id::Word::new(1));
    /// assert!(words.visit().all(|word| word.id().is_some()));
    /// ```
    pub fn id(&self) -> Option<u32> {
        self.id
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a shard that is held has a value.
        unsafe { self.hold.shard.value_unchecked() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("id", &self.id).field("value", &**self).finish()
    }
}
