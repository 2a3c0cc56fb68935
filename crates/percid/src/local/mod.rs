//! One value per ID, used exclusively by any closure.
//!
//! # A shard's memory
//!
//! Word 0 is the lock, word 1 is nonzero if the shard is closed, then comes the value. The lock is
//! 0 if there is no value, [`READY`] if there is one that no thread uses, and otherwise the
//! holder's token. A visitor recognises the shards that it holds itself by that token.
//!
//! # Proof of exclusion
//!
//! The section `acquire` takes the lock: it stores the token if the shard is open and the lock is
//! as expected, 0 or [`READY`]. It checks first that the shard is open. In the other order it could
//! find a value that a visitor takes out before the section finds the shard open again. Two
//! sections on one shard cannot overlap, since the shard's ID belongs to one CPU at a time (see
//! [`critical`](crate::critical)). The holder of the lock may be preempted, moved, or lose the
//! CPU's ID: the lock stays taken, and the next thread with that ID finds the token there. The lock
//! is released by a store that orders everything done to the value before it; the next holder's
//! section reads it with acquire semantics.
//!
//! A visitor *closes* the shard, fences all CPUs, and waits until no thread holds the lock. A
//! section that found the shard open has committed or been aborted when the fence returns; one that
//! starts later finds it closed. So from the fence on no section takes the lock any more. The
//! visitor takes it by an exchange when the present holder has released it, and waits for no other
//! thread after that; it releases the lock and opens the shard. Shards without sections (the atomic
//! source, extra ones) are taken by an exchange. After that the taker checks whether the shard is
//! closed, and releases the lock if it is. There is a full barrier between the exchange and that
//! check, and one between closing and the visitor's load of the lock. So at least one of the two
//! threads sees the other's store. Until the taker has released the lock the visitor's exchange
//! fails.
//!
//! A thread that finds its shard in use or closed takes an *extra* shard instead. These form a list
//! of values outside the arena that grows when all are in use. So only visitors wait.

#[cfg(feature = "capi")]
mod capi;
mod closed;
mod left_behind;
mod lock;
mod shard;
mod slow;
#[cfg(feature = "testing")]
mod testing;
pub(super) mod visit;

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::critical::by_mark;
use crate::handle::{Handle, Needs, State};
use crate::id::set::{IdSet, ids};
use crate::id::{Source, SourceError};
use crate::push_list;
use crate::sys::{memory, thread};
use crate::visit_lock::VisitLock;
#[cfg(feature = "capi")]
pub(crate) use lock::CLOSED;
#[cfg(not(feature = "capi"))]
use lock::CLOSED;
use lock::READY;
use shard::{Extra, Shard, ShardGuard, drop_value, shard_at};

/// A value of type `T` for every CPU that requests one, for use by any closure.
///
/// [`with`](Local::with) lends the CPU's value to a closure, under a lock that takes no locked
/// instruction. [`for_each`](Local::for_each) and [`drain`](Local::drain) visit all values; they
/// interrupt the CPUs briefly by a fence. It supports operations that a counter, a stack or a ring
/// does not.
///
/// ```
/// use std::collections::HashMap;
///
/// static HITS: percid::Local<HashMap<&str, u64>> = percid::Local::new(HashMap::new);
///
/// HITS.with(|hits| *hits.entry("/index.html").or_default() += 1);
///
/// let mut total = 0;
/// HITS.for_each(|hits| total += hits["/index.html"]);
/// assert_eq!(total, 1);
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. No two closures ever
///   have the same value at the same time.
/// * **Value**: the calling CPU's value at the time of the call. A thread that migrates during the
///   closure keeps it. Later calls may return another value. If that value is in use, the thread
///   gets an extra one, which is made if needed. Its user may be a thread that was preempted inside
///   its closure, a visitor, or the caller itself further up its stack. There are at most as many
///   extra ones as closures were ever active at the same time.
/// * **Waiting**: `with` does not wait. `for_each` and `drain` wait for closures that are active,
///   and for each other.
/// * **A visit may miss** values that are made while it runs; and those of all IDs, if the process
///   has entered a sandbox that refuses `membarrier` since its first use.
/// * **Panics**: a closure that panics leaves the value as it is then; nothing is poisoned.
/// * **Signals**: `with` is async-signal-safe if the closure and `make` are. A handler that
///   interrupts a closure gets another value. The other methods are not async-signal-safe.
/// * **Async**: a closure cannot contain `.await`, so no value is held across one. A future that is
///   made in the closure does not keep the value.
/// * **Fork**: the child has a copy of every value. The values that other threads of the parent
///   were using are lost in the child: `with` uses others. The child's first `for_each` or `drain`
///   skips each of them, after waiting for it for about a second if the child has several threads.
///   (A thread panics as if it were inside `with` if its stack lies at the address of such a
///   thread's.)
/// * **Memory**: 256 bytes for the handle (more if `make` captures about 100 bytes or more); for
///   every ID that used it the size of `T` and 16 bytes, rounded up to a power of two; at least a
///   page for an extra one.
/// * **Cost**: `with` about 30 instructions in addition to the closure, three of them stores, none
///   locked; with [`Source::Atomic`] a call and one locked instruction. `for_each` and `drain` one
///   fence, about 10 us, for every 64 IDs.
#[repr(C, align(64))]
pub struct Local<T, F = fn() -> T> {
    handle: Handle,
    /// `None` if values are made of zeros. Only for C objects: their static storage contains no
    /// Rust function, and their values may be zero.
    make: Option<F>,
    members: IdSet,
    extras: AtomicPtr<Extra<T>>,
    visits: VisitLock,
    /// The process in which values were first made, or that has last visited all of them.
    generation: AtomicU32,
    /// The object owns values, and is invariant: a value that is stored as one type must not be
    /// lent as another.
    values: PhantomData<*mut T>,
}

/// Offsets and sizes that C programs contain as numbers: they define locals in static storage, and
/// acquire inline.
#[cfg(all(feature = "capi", target_pointer_width = "64"))]
const _: () = {
    use std::mem::offset_of;

    type Addresses = Local<[usize; 2]>;
    assert!(size_of::<Addresses>() == 256);
    assert!(offset_of!(Addresses, handle) == 0 && offset_of!(Addresses, make) == 8);
    assert!(offset_of!(Shard<[usize; 2]>, value) == 16);
    assert!(READY == 1 && CLOSED == 8);
};

// SAFETY: values are lent to one thread at a time, and may be made, used and dropped by different
// threads. Several threads may make one at the same time, through a shared reference to `make`.
unsafe impl<T: Send, F: Sync> Sync for Local<T, F> {}
// SAFETY: values are lent to one thread at a time; the new owner of the object makes values, and
// drops `make`.
unsafe impl<T: Send, F: Send> Send for Local<T, F> {}

impl<T, F> Local<T, F> {
    const BYTES: usize = size_of::<Shard<T>>();

    const ALIGNED: () = assert!(align_of::<T>() <= 4096, "values are aligned to a page at most");
}

impl<T, F: Fn() -> T> Local<T, F> {
    /// Creates values with `make` when an ID first requests one. The object will use the source of
    /// the process (see [`init`](crate::init)).
    ///
    /// ```
    /// use percid::Local;
    ///
    /// static NAMES: Local<Vec<String>> = Local::new(Vec::new);
    /// NAMES.with(|names| names.push("one".to_owned()));
    /// ```
    ///
    /// A closure may capture data for the values. Its type is then part of the object's type:
    ///
    /// ```
    /// use percid::Local;
    ///
    /// let capacity = std::env::args().count() * 100;
    /// let batches = Local::new(move || Vec::<u64>::with_capacity(capacity));
    /// assert!(batches.with(|batch| batch.capacity()) >= capacity);
    /// ```
    #[must_use]
    pub const fn new(make: F) -> Local<T, F> {
        const { Self::ALIGNED };
        Local {
            handle: Handle::new(),
            make: Some(make),
            members: IdSet::new(),
            extras: AtomicPtr::new(ptr::null_mut()),
            visits: VisitLock { visitor: AtomicU64::new(0) },
            generation: AtomicU32::new(0),
            values: PhantomData,
        }
    }

    /// Creates an object like [`new`](Local::new) that uses `source`, whatever the process has
    /// chosen.
    ///
    /// ```
    /// use percid::{Local, Source};
    ///
    /// let cache = Local::with_source(Source::Atomic, Vec::<u64>::new)?;
    /// cache.with(|cache| cache.push(1));
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used, or not with the fence that visits need.
    pub fn with_source(source: Source, make: F) -> Result<Local<T, F>, SourceError> {
        let mut local = Local::new(make);
        local.handle = Handle::with_source(source, Needs::Fence, Self::BYTES)?;
        Ok(local)
    }
}

impl<T, F> Local<T, F> {
    /// Returns the extra shards.
    fn extras(&self) -> impl Iterator<Item = NonNull<Shard<T>>> {
        let mut next = push_list::first(&self.extras);
        std::iter::from_fn(move || {
            let extra = NonNull::new(next)?;
            // SAFETY: extras are not moved or unmapped until the handle is dropped; `next` is never
            // changed after the extra was published.
            next = unsafe { (*extra.as_ptr()).next };
            Some(extra.cast())
        })
    }
}

impl<T: Send, F: Fn() -> T> Local<T, F> {
    /// Lends a value to `f`.
    ///
    /// ```
    /// let scratch = percid::Local::new(String::new);
    /// let length = scratch.with(|scratch| {
    ///     scratch.clear(); // as another closure left it
    ///     scratch.push_str("hello");
    ///     scratch.len()
    /// });
    /// assert_eq!(length, 5);
    /// ```
    ///
    /// # Panics
    ///
    /// If another value is needed and there is no memory for it; and if `f` or `make` does.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        match self.try_with(f) {
            Some(result) => result,
            None => panic!("percid::Local: no memory for another value"),
        }
    }

    /// Lends a value to `f` like [`with`](Local::with), but returns `None` if there is no memory.
    ///
    /// ```
    /// let totals = percid::Local::new(|| 0u64);
    /// assert_eq!(totals.try_with(|total| std::mem::replace(total, 4)), Some(0));
    /// ```
    #[must_use = "without memory the closure is not called"]
    #[inline(always)]
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut held = match self.take_ready() {
            Some(held) => held,
            None => self.hold_slowly()?,
        };
        Some(f(held.value()))
    }

    #[cfg(any(test, feature = "capi"))]
    #[inline(always)]
    fn hold_shard(&self) -> Option<ShardGuard<'_, T>> {
        self.take_ready().or_else(|| self.hold_slowly())
    }

    /// Returns the shard of this thread's ID, if it has a value that no thread uses.
    #[inline(always)]
    fn take_ready(&self) -> Option<ShardGuard<'_, T>> {
        let word = self.handle.word();
        let token = thread::token();
        // SAFETY: the word of this object's handle.
        let shard = unsafe { by_mark!(word, acquire::<CLOSED>(READY as usize, token), else 0) };
        let shard = NonNull::new(ptr::with_exposed_provenance_mut(shard))?;
        Some(ShardGuard { shard, released: READY, lent: PhantomData })
    }
}

impl<T, F> Drop for Local<T, F> {
    fn drop(&mut self) {
        if let State::Claimed(block, Some(source)) = self.handle.state() {
            let members = self.members.words_below(source.id_count());
            for id in members.flat_map(|(index, bits)| ids(index, bits)) {
                // SAFETY: members are shards in open slots; `&mut self` guarantees that no other
                // thread uses them.
                unsafe { drop_value(shard_at::<T>(block.of_id(id))) };
            }
        }
        let mut next = *self.extras.get_mut();
        while let Some(extra) = NonNull::new(next) {
            // SAFETY: `&mut self` guarantees that no other thread uses the extras; each is a
            // mapping of its own.
            unsafe {
                next = (*extra.as_ptr()).next;
                drop_value(extra.cast::<Shard<T>>());
                memory::unmap(extra.cast(), size_of::<Extra<T>>());
            }
        }
        self.members.clear();
        // SAFETY: `&mut self` proves that no operation on this object is running or will run.
        unsafe { self.handle.release(Self::BYTES) };
    }
}

/// An object whose values are made by `T::default`.
impl<T: Default> Default for Local<T> {
    fn default() -> Self {
        Local::new(T::default)
    }
}

impl<T, F> fmt::Debug for Local<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.members.words().flat_map(|(index, bits)| ids(index, bits));
        f.debug_struct("Local")
            .field("ids", &members.collect::<Vec<_>>())
            .field("extra", &self.extras().count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
