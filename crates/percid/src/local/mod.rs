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

mod left_behind;
mod lock;

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::arena::{Block, STRIDE};
use crate::critical::by_mark;
use crate::handle::{self, Handle, Needs, State};
use crate::id::set::{IdSet, ids};
use crate::id::{Source, SourceError, fence};
use crate::push_list;
use crate::retry::retry;
use crate::sys::{memory, preserving_errno, race_detector, thread};
use crate::visit_lock::{VisitGuard, VisitLock};
use left_behind::Forks;
#[cfg(feature = "capi")]
pub(crate) use lock::CLOSED;
#[cfg(not(feature = "capi"))]
use lock::CLOSED;
use lock::{Lock, NONE, READY};

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

/// A shard: its lock and its value.
#[repr(C)]
struct Shard<T> {
    lock: Lock,
    value: T,
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

/// A shard that belongs to no ID.
#[repr(C)]
struct Extra<T> {
    shard: Shard<T>,
    next: *mut Extra<T>,
}

// SAFETY: values are lent to one thread at a time, and may be made, used and dropped by different
// threads. Several threads may make one at the same time, through a shared reference to `make`.
unsafe impl<T: Send, F: Sync> Sync for Local<T, F> {}
// SAFETY: values are lent to one thread at a time; the new owner of the object makes values, and
// drops `make`.
unsafe impl<T: Send, F: Send> Send for Local<T, F> {}

/// A shard that the calling thread holds, released when the guard is dropped.
#[derive(Debug)]
struct ShardGuard<'l, T> {
    shard: NonNull<Shard<T>>,
    /// The new state of the lock: [`NONE`] as long as there is no value.
    released: i64,
    local: PhantomData<&'l Local<T>>,
}

impl<T> ShardGuard<'_, T> {
    /// Returns the value.
    #[inline(always)]
    fn value(&mut self) -> &mut T {
        // SAFETY: only this thread uses the shard until the lock is released, and it has a value.
        unsafe { &mut (*self.shard.as_ptr()).value }
    }

    fn fill(&mut self, make: Option<&impl Fn() -> T>) {
        // SAFETY: only this thread uses the shard until the lock is released.
        let place = unsafe { &raw mut (*self.shard.as_ptr()).value };
        // SAFETY: as above; there is no value that this would overwrite, and zeros are one where
        // there is no function.
        unsafe {
            match make {
                Some(make) => place.write(make()),
                None => place.write_bytes(0, 1),
            }
        }
        self.released = READY;
    }
}

impl<T> Drop for ShardGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: shards stay mapped as long as the handle.
        unsafe { (*self.shard.as_ptr()).lock.release(self.released) };
    }
}

/// A shard that the calling thread holds, outside the hot path of a Rust program: its release is
/// announced to race detectors. (They see the atomics of a program that is compiled for them.)
#[doc(hidden)]
#[derive(Debug)]
pub struct LocalGuard<'l, T>(ShardGuard<'l, T>);

impl<T> LocalGuard<'_, T> {
    /// Returns the value.
    #[doc(hidden)]
    #[inline(always)]
    pub fn value(&mut self) -> &mut T {
        self.0.value()
    }
}

impl<T> Drop for LocalGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        race_detector::release(self.0.shard.addr().get());
    }
}

/// Announces that the calling thread has taken the lock of a shard.
fn announce_acquired<T>(shard: NonNull<Shard<T>>) {
    race_detector::acquire(shard.addr().get());
}

/// A shard that the calling thread has taken, and the earlier state of its lock.
struct Acquired<T> {
    shard: NonNull<Shard<T>>,
    found: i64,
    /// `None` for an extra shard.
    id: Option<u32>,
}

/// The location of shards that are visited together.
#[derive(Debug)]
enum Batch<T> {
    /// The shards of an ID and of the 63 IDs after it.
    Ids { block: Block, base: u32 },
    /// An extra shard.
    Extra(NonNull<Shard<T>>),
}

impl<T> Batch<T> {
    fn shard(&self, bit: u32) -> NonNull<Shard<T>> {
        match *self {
            Batch::Ids { block, base } => shard_at(block.of_id(base + bit)),
            Batch::Extra(shard) => shard,
        }
    }

    fn id(&self, bit: u32) -> Option<u32> {
        match self {
            Batch::Ids { base, .. } => Some(base + bit),
            Batch::Extra(_) => None,
        }
    }

    fn lock(&self, bit: u32) -> &Lock {
        // SAFETY: shards stay mapped as long as the handle.
        unsafe { &(*self.shard(bit).as_ptr()).lock }
    }
}

/// Closed shards, which are visited from the lowest bit on, and opened when dropped.
#[derive(Debug)]
struct Closed<T> {
    batch: Batch<T>,
    bits: u64,
}

impl<T> Closed<T> {
    fn new(batch: Batch<T>, bits: u64) -> Closed<T> {
        ids(0, bits).for_each(|bit| batch.lock(bit).close());
        Closed { batch, bits }
    }

    fn lowest(&self) -> Option<u32> {
        ids(0, self.bits).next()
    }

    fn open_lowest(&mut self) {
        if let Some(bit) = self.lowest() {
            self.batch.lock(bit).open();
            self.bits &= self.bits - 1;
        }
    }
}

impl<T> Drop for Closed<T> {
    fn drop(&mut self) {
        ids(0, self.bits).for_each(|bit| self.batch.lock(bit).open());
    }
}

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
}

impl<T> Local<T> {
    /// Creates an object like [`new`](Local::new) that uses `source`, whatever the process has
    /// chosen. Here `make` captures nothing, so that the result is a `Local<T>`.
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
    pub fn with_source(source: Source, make: fn() -> T) -> Result<Local<T>, SourceError> {
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
    #[inline(always)]
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut held = match self.take_ready() {
            Some(held) => held,
            None => self.hold_slowly()?,
        };
        Some(f(held.value()))
    }

    /// Takes a value until the guard is dropped; `None` if there is no memory. It is for C
    /// functions, which may end the thread or jump, and must not do so across percid's frames.
    #[doc(hidden)]
    #[inline(always)]
    pub fn lock(&self) -> Option<LocalGuard<'_, T>> {
        self.hold_shard().map(LocalGuard)
    }

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
        Some(ShardGuard { shard, released: READY, local: PhantomData })
    }

    /// Visits all values, of every ID and the extra ones.
    ///
    /// Waits for closures that are using one. If `f` panics, the values that come after are not
    /// visited.
    ///
    /// ```
    /// let totals = percid::Local::new(|| 0u64);
    /// totals.with(|total| *total += 4);
    /// let mut sum = 0;
    /// totals.for_each(|total| sum += *total);
    /// assert_eq!(sum, 4);
    /// ```
    ///
    /// # Panics
    ///
    /// If the calling thread is inside a closure of [`with`](Local::with) or of a visit of the same
    /// object: it would wait for itself.
    pub fn for_each(&self, mut f: impl FnMut(&mut T)) {
        let mut visit = self.visit().unwrap_or_else(HeldByCaller::panic);
        while let Some(value) = visit.next().unwrap_or_else(HeldByCaller::panic) {
            f(value);
        }
    }

    /// Takes all values out and passes them to `f`. New ones are made when they are needed.
    ///
    /// Waits for closures that are using one. If `f` panics, the values that come after stay.
    ///
    /// ```
    /// let batches = percid::Local::new(Vec::<u32>::new);
    /// batches.with(|batch| batch.push(7));
    /// let mut all = Vec::new();
    /// batches.drain(|batch| all.extend(batch));
    /// assert_eq!(all, [7]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the calling thread is inside a closure or a visit of the same object, as for
    /// [`for_each`](Local::for_each).
    pub fn drain(&self, mut f: impl FnMut(T)) {
        let mut visit = self.visit().unwrap_or_else(HeldByCaller::panic);
        while visit.next().unwrap_or_else(HeldByCaller::panic).is_some() {
            if let Some(value) = visit.take() {
                f(value);
            }
        }
    }

    /// Begins a visit that returns one value after the other: for C, like [`lock`](Local::lock).
    ///
    /// # Errors
    ///
    /// The calling thread is inside a closure or a visit of this object.
    #[doc(hidden)]
    pub fn visit(&self) -> Result<Visit<'_, T, F>, HeldByCaller> {
        // Before waiting for other visitors, one of which may wait for this thread.
        if self.is_held_by_caller() {
            return Err(HeldByCaller);
        }
        let visiting = self.visits.lock().ok_or(HeldByCaller)?;
        let parts = match self.handle.state() {
            State::Claimed(block, Some(source)) => Some((block, source, source.id_count())),
            _ => None,
        };
        Ok(Visit {
            local: self,
            present: None,
            closed: None,
            parts,
            next_word: 0,
            extra: None,
            forks: Forks::since(&self.generation),
            _visiting: visiting,
        })
    }

    /// Returns `true` if the calling thread holds a value, including one of a visit.
    fn is_held_by_caller(&self) -> bool {
        let token = thread::token() as i64;
        // SAFETY: shards stay mapped as long as the handle.
        let is_mine = |shard: NonNull<Shard<T>>| unsafe { (*shard.as_ptr()).lock.state() } == token;
        let State::Claimed(block, source) = self.handle.state() else {
            return self.extras().any(is_mine);
        };
        let words = self.members.words_below(source.map_or(0, Source::id_count));
        let mut members = words.flat_map(|(index, bits)| ids(index, bits));
        members.any(|id| is_mine(shard_at(block.of_id(id)))) || self.extras().any(is_mine)
    }

    /// Returns a shard for this thread if the fast path has none.
    #[cold]
    #[inline(never)]
    fn hold_slowly(&self) -> Option<ShardGuard<'_, T>> {
        if let Some(shard) = self.handle.atomic_block().and_then(take_at_hint) {
            announce_acquired(shard);
            return Some(ShardGuard { shard, released: READY, local: PhantomData });
        }
        let acquired = preserving_errno(|| {
            let acquired = self.acquire_slowly().or_else(|| self.acquire_extra())?;
            // This happens before there is a value, and before the lock is released, so a visit
            // misses no value. If `make` panics, the member has no value, which only costs a visit.
            if let Acquired { found: NONE, id, .. } = acquired {
                left_behind::note(&self.generation);
                id.into_iter().for_each(|id| self.members.insert(id));
            }
            Some(acquired)
        })?;
        let Acquired { shard, found, .. } = acquired;
        announce_acquired(shard);
        let mut held = ShardGuard { shard, released: found, local: PhantomData };
        if found == NONE {
            held.fill(self.make.as_ref());
        }
        Some(held)
    }

    /// Returns the shard of this thread's ID, unless another thread is using it.
    fn acquire_slowly(&self) -> Option<Acquired<T>> {
        let State::Claimed(block, Some(source)) = self.handle.settle(Needs::Fence, Self::BYTES)
        else {
            return None;
        };
        // The section compares the lock with the state that was read before it.
        let read = Cell::new(None);
        let acquire = || {
            let (mine, found) = read.take()?;
            let shard: NonNull<Shard<T>> = try_acquire(block, source, mine, found)?;
            let id = ((shard.addr().get() - block.0) / STRIDE - 1) as u32;
            Some(Acquired { shard, found, id: Some(id) })
        };
        let read_lock = || {
            let mine: NonNull<Shard<T>> = shard_at(block.of_id(source.ensure_id_hint()?));
            // SAFETY: shards stay mapped as long as the handle.
            let lock = unsafe { &(*mine.as_ptr()).lock };
            let found = lock.state();
            if lock.is_closed() || (found != READY && found != NONE) {
                return None;
            }
            read.set(Some((mine, found)));
            Some(ControlFlow::Continue(()))
        };
        retry(acquire, read_lock)
    }

    /// Returns an extra shard that no thread uses, or a new one.
    fn acquire_extra(&self) -> Option<Acquired<T>> {
        let free = self.extras().find_map(|shard| {
            // SAFETY: extras are not moved or unmapped as long as the handle exists.
            let lock = unsafe { &(*shard.as_ptr()).lock };
            let found = lock.state();
            let taken = (found == READY || found == NONE) && lock.try_take(found);
            taken.then_some(Acquired { shard, found, id: None })
        });
        free.or_else(|| self.new_extra())
    }

    fn new_extra(&self) -> Option<Acquired<T>> {
        let extra = memory::map(size_of::<Extra<T>>())?.cast::<Extra<T>>();
        // SAFETY: fresh zeroed memory, large enough and aligned to a page; all zero is a valid
        // lock, and the value counts as none.
        unsafe { (*extra.as_ptr()).shard.lock.take_fresh() };
        // SAFETY: no other thread has access to the extra before it is pushed.
        let link = |next| unsafe { (*extra.as_ptr()).next = next };
        push_list::push(&self.extras, extra.as_ptr(), link);
        Some(Acquired { shard: extra.cast(), found: NONE, id: None })
    }
}

/// Functions for C programs, which take and release a value by separate calls.
#[cfg(feature = "capi")]
impl<T: Send> Local<T> {
    /// Takes a value, which belongs to the caller until it is [released](Local::release); `None` if
    /// there is no memory. Until then visits wait.
    #[doc(hidden)]
    pub fn acquire(&self) -> Option<NonNull<T>> {
        let held = std::mem::ManuallyDrop::new(self.hold_shard()?);
        // SAFETY: shards are not at address zero.
        Some(unsafe { NonNull::new_unchecked(&raw mut (*held.shard.as_ptr()).value) })
    }

    /// Releases a value.
    ///
    /// # Safety
    ///
    /// `value` must be a result of [`acquire`](Local::acquire) that was not released since.
    #[doc(hidden)]
    pub unsafe fn release(value: NonNull<T>) {
        race_detector::release(Self::shard_of(value).addr());
        // SAFETY: the caller guarantees that the value lies in a shard that it holds.
        unsafe { (*Self::shard_of(value)).lock.release(READY) };
    }

    /// Returns the lock of a value that was [acquired](Local::acquire).
    #[doc(hidden)]
    pub fn lock_of(value: NonNull<T>) -> *mut i64 {
        Self::shard_of(value).cast()
    }

    fn shard_of(value: NonNull<T>) -> *mut Shard<T> {
        value.as_ptr().wrapping_byte_sub(std::mem::offset_of!(Shard<T>, value)).cast()
    }
}

#[cfg(feature = "testing")]
impl<T, F> Local<T, F> {
    /// Returns the lock and the value of an ID.
    pub(crate) fn shard_of_id(&self, id: u32) -> Option<(&std::sync::atomic::AtomicI64, *mut T)> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                let shard: NonNull<Shard<T>> = shard_at(block.of_id(id));
                // SAFETY: the shard lies in an open slot, which stays mapped.
                Some(unsafe { (&(*shard.as_ptr()).lock.state, &raw mut (*shard.as_ptr()).value) })
            }
            _ => None,
        }
    }
}

/// The error of a visit that would wait for its own thread.
#[doc(hidden)]
#[derive(Debug)]
pub struct HeldByCaller;

impl HeldByCaller {
    #[cold]
    fn panic<R>(self) -> R {
        panic!(
            "percid::Local: a visit waits for all values, and the calling thread has one of this object"
        )
    }
}

/// A visit, value by value. If it is dropped before its end, the values that it has not returned
/// stay.
#[doc(hidden)]
#[derive(Debug)]
pub struct Visit<'l, T, F = fn() -> T> {
    local: &'l Local<T, F>,
    // In the order in which they are dropped.
    /// The current value and its ID, which is that of the lowest closed shard.
    present: Option<(LocalGuard<'l, T>, Option<u32>)>,
    closed: Option<Closed<T>>,
    /// The shards of IDs: `None` when all were visited.
    parts: Option<(Block, Source, u32)>,
    /// The word of the set with the next IDs.
    next_word: usize,
    /// The next extra shard, once the visit has reached these.
    extra: Option<*mut Extra<T>>,
    forks: Forks,
    _visiting: VisitGuard<'l>,
}

impl<T: Send, F> Visit<'_, T, F> {
    /// Returns the next value, until the next call.
    ///
    /// # Errors
    ///
    /// The calling thread has taken a value since the visit began, and it is the next one.
    #[doc(hidden)]
    pub fn next(&mut self) -> Result<Option<&mut T>, HeldByCaller> {
        if self.present.take().is_some() {
            self.closed.iter_mut().for_each(Closed::open_lowest);
        }
        while !self.take_next()? {
            if !self.close_next() {
                self.forks.settle(&self.local.generation);
                return Ok(None);
            }
        }
        Ok(self.present.as_mut().map(|(held, _)| held.value()))
    }

    /// Takes out the last value that [`next`](Visit::next) returned; `None` if that was done.
    #[doc(hidden)]
    pub fn take(&mut self) -> Option<T> {
        let (held, id) = self.present.as_mut()?;
        if held.0.released == NONE {
            return None;
        }
        held.0.released = NONE;
        if let Some(id) = *id {
            self.local.members.remove(id);
        }
        // SAFETY: the value is this thread's, and from now on the shard counts as having none.
        Some(unsafe { ptr::read(held.value()) })
    }

    /// Takes the lock of the next closed shard that has a value, and opens those that have none.
    fn take_next(&mut self) -> Result<bool, HeldByCaller> {
        let Some(closed) = &mut self.closed else { return Ok(false) };
        while let Some(bit) = closed.lowest() {
            // Only this thread stores its token, and never in a closed shard.
            if closed.batch.lock(bit).state() == thread::token() as i64 {
                return Err(HeldByCaller);
            }
            if closed.batch.lock(bit).take_closed(|backoff| self.forks.has_left(backoff)) {
                let shard = closed.batch.shard(bit);
                announce_acquired(shard);
                let held = LocalGuard(ShardGuard { shard, released: READY, local: PhantomData });
                self.present = Some((held, closed.batch.id(bit)));
                return Ok(true);
            }
            closed.open_lowest();
        }
        self.closed = None;
        Ok(false)
    }

    /// Closes the next shards. Returns `false` if there are none.
    fn close_next(&mut self) -> bool {
        self.close_next_ids() || self.close_next_extra()
    }

    fn close_next_ids(&mut self) -> bool {
        let Some((block, source, end)) = self.parts else { return false };
        let Some((index, bits)) = self.local.members.next_word(self.next_word, end) else {
            self.parts = None;
            return false;
        };
        self.next_word = index + 1;
        self.closed = Some(Closed::new(Batch::Ids { block, base: index as u32 * 64 }, bits));
        if source != Source::Atomic && fence::all().is_err() {
            self.closed = None;
            self.forks.pass_by();
        }
        true
    }

    fn close_next_extra(&mut self) -> bool {
        let next = self.extra.get_or_insert_with(|| push_list::first(&self.local.extras));
        let Some(extra) = NonNull::new(*next) else { return false };
        // SAFETY: extras are not moved or unmapped until the handle is dropped; `next` is never
        // changed after the extra was published.
        *next = unsafe { (*extra.as_ptr()).next };
        self.closed = Some(Closed::new(Batch::Extra(extra.cast()), 1));
        true
    }
}

fn shard_at<T>(address: usize) -> NonNull<Shard<T>> {
    // The address of a shard is never null.
    NonNull::new(ptr::with_exposed_provenance_mut(address)).unwrap_or(NonNull::dangling())
}

/// Takes the shard of the thread's hint for the atomic source, if it is ready.
fn take_at_hint<T>(block: Block) -> Option<NonNull<Shard<T>>> {
    let shard: NonNull<Shard<T>> = shard_at(block.of_id(Source::Atomic.ensure_id_hint()?));
    // SAFETY: shards stay mapped as long as the handle.
    unsafe { (*shard.as_ptr()).lock.try_take(READY) }.then_some(shard)
}

/// Takes the lock of this thread's shard, which is `mine` unless it has been moved since.
fn try_acquire<T>(
    block: Block,
    source: Source,
    mine: NonNull<Shard<T>>,
    expected: i64,
) -> Option<NonNull<Shard<T>>> {
    if source == Source::Atomic {
        // SAFETY: shards stay mapped as long as the handle.
        let lock = unsafe { &(*mine.as_ptr()).lock };
        return lock.try_take(expected).then_some(mine);
    }
    // SAFETY: a block of shards, whose source has been prepared.
    let address = unsafe { acquire(handle::marked(block, source), expected) };
    NonNull::new(ptr::with_exposed_provenance_mut(address))
}

/// Runs the section, in one place for all types of values.
///
/// # Safety
///
/// `word` is a block of shards with the mark of a source that has been prepared.
#[inline(never)]
unsafe fn acquire(word: usize, expected: i64) -> usize {
    let token = thread::token();
    // SAFETY: the caller passes a block of shards with the mark of a prepared source.
    unsafe { by_mark!(word, acquire::<CLOSED>(expected as usize, token), else 0) }
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

/// Drops the value of a shard, if it has one. In a child of `fork`, a value that another thread of
/// the parent was using is not dropped.
///
/// # Safety
///
/// No other thread uses the shard.
unsafe fn drop_value<T>(shard: NonNull<Shard<T>>) {
    // SAFETY: the caller guarantees that no other thread uses the shard; if the lock is ready,
    // there is a value.
    unsafe {
        if (*shard.as_ptr()).lock.state() == READY {
            (*shard.as_ptr()).lock.release(NONE);
            (&raw mut (*shard.as_ptr()).value).drop_in_place();
        }
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
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::sys::steps::{self, Fence, Step};

    fn sources() -> impl Iterator<Item = Source> {
        Source::ALL.into_iter().filter(|source| source.prepare().is_ok())
    }

    #[test]
    fn no_two_closures_have_one_value() {
        const CLOSURES: u64 = if cfg!(miri) { 100 } else { 100_000 };
        for source in sources() {
            let local = Local::with_source(source, || 0u64).expect("an available source");
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| (0..CLOSURES).for_each(|_| local.with(|value| *value += 1)));
                }
            });
            let mut sum = 0;
            local.for_each(|value| sum += *value);
            assert_eq!(sum, 4 * CLOSURES, "{source}");
        }
    }

    #[test]
    fn a_closure_inside_a_closure_has_another_value() {
        for source in sources() {
            let local = Local::with_source(source, || 0).expect("an available source");
            local.with(|outer| {
                *outer += 1;
                local.with(|inner| {
                    *inner += 10;
                    local.with(|innermost| *innermost += 100);
                });
            });
            let mut values = Vec::new();
            local.drain(|value| values.push(value));
            assert_eq!(values.iter().sum::<i32>(), 111, "{source}");
            assert_eq!(values.len(), 3, "{source}");
            local.for_each(|_| panic!("nothing is left"));
        }
    }

    #[test]
    fn a_value_is_made_again_after_a_drain() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let local = Local::new(|| MADE.fetch_add(1, Relaxed));
        let first = local.with(|value| *value);
        local.drain(drop);
        assert!(local.with(|value| *value) > first);
    }

    #[test]
    fn what_makes_values_may_capture() {
        let made = AtomicUsize::new(0);
        let (name, kept) = (String::from("captured"), Arc::new(()));
        let local = Local::new({
            let (made, kept) = (&made, Arc::clone(&kept));
            move || (name.len() + made.fetch_add(1, Relaxed), Arc::clone(&kept))
        });
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| local.with(|_| local.with(|(length, _)| assert!(*length >= 8))));
            }
        });
        let mut lengths = Vec::new();
        local.for_each(|(length, _)| lengths.push(*length));
        lengths.sort_unstable();
        let made = made.load(Relaxed);
        assert_eq!(lengths, (8..8 + made).collect::<Vec<_>>(), "each was made once");
        assert_eq!(Arc::strong_count(&kept), 2 + made);
        drop(local);
        assert_eq!(Arc::strong_count(&kept), 1, "the closure is dropped with it");
    }

    #[test]
    fn values_are_dropped_with_it() {
        let kept = Arc::new(());
        let local = Local::new(|| Arc::clone(&kept));
        local.with(|_| local.with(|_| ()));
        assert_eq!(Arc::strong_count(&kept), 3);
        drop(local);
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn panics_release_the_value() {
        let local = Local::new(|| 1);
        let thrown = catch_unwind(AssertUnwindSafe(|| {
            local.with(|value| {
                *value = 5;
                panic!("on purpose");
            })
        }));
        assert!(thrown.is_err());
        let thrown = catch_unwind(AssertUnwindSafe(|| local.for_each(|_| panic!("on purpose"))));
        assert!(thrown.is_err());
        let mut values = Vec::new();
        local.for_each(|value| values.push(*value));
        assert_eq!(values, [5]);
    }

    #[test]
    fn a_value_that_cannot_be_made_leaves_nothing_behind() {
        static FAIL: AtomicUsize = AtomicUsize::new(1);
        let local = Local::new(|| assert_eq!(FAIL.load(Relaxed), 0, "on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(|| local.with(|()| ()))).is_err());
        local.for_each(|()| panic!("there is no value"));
        FAIL.store(0, Relaxed);
        local.with(|()| ());
        let mut count = 0;
        local.for_each(|()| count += 1);
        assert_eq!(count, 1);
    }

    #[test]
    fn a_thread_that_would_wait_for_itself_panics() {
        for source in sources() {
            let local = Local::with_source(source, || 0).expect("an available source");
            let inside = || local.with(|_| local.for_each(|_| ()));
            assert!(catch_unwind(AssertUnwindSafe(inside)).is_err(), "{source}");
            let nested = || local.for_each(|_| local.drain(drop));
            assert!(catch_unwind(AssertUnwindSafe(nested)).is_err(), "{source}");
            // It panics before it visits anything, although no thread uses the first value.
            let (first, second) = (local.lock(), local.lock());
            drop(first);
            let visit = || local.for_each(|value| *value = 7);
            assert!(catch_unwind(AssertUnwindSafe(visit)).is_err(), "{source}");
            drop(second);
            // All existing shards: the thread may have moved to a CPU that has none.
            local.for_each(|value| *value += 1);
            let mut values = Vec::new();
            local.for_each(|value| values.push(*value));
            assert!(!values.is_empty() && values.iter().all(|&value| value == 1), "{values:?}");
        }
    }

    /// Takes values until one is an extra one, which visits reach last.
    #[cfg(all(unix, not(any(miri, percid_plain))))]
    fn keep<'l>(local: &'l Local<i32>, kept: &mut Vec<LocalGuard<'l, i32>>) {
        // SAFETY: shards stay mapped as long as the handle.
        let state = |shard: NonNull<Shard<i32>>| unsafe { (*shard.as_ptr()).lock.state() };
        while !local.extras().any(|extra| state(extra) == thread::token() as i64) {
            kept.extend(local.lock());
        }
    }

    /// A C function that a visit calls can do this; a Rust closure always releases its value.
    #[test]
    #[cfg(all(unix, not(any(miri, percid_plain))))]
    fn a_visit_does_not_wait_for_what_its_own_thread_has_kept() {
        for source in sources() {
            let local = Local::with_source(source, || 0).expect("an available source");
            make_one(&local);
            left_behind::tests::in_child(|| {
                let mut kept = Vec::new();
                let mut visit = local.visit().expect("it has none yet");
                while let Ok(Some(_)) = visit.next() {
                    keep(&local, &mut kept);
                }
                visit.next().is_err()
            });
            let mut kept = Vec::new();
            let visit = || local.for_each(|_| keep(&local, &mut kept));
            assert!(catch_unwind(AssertUnwindSafe(visit)).is_err(), "{source}");
            let drain = || local.drain(drop);
            assert!(catch_unwind(drain).is_err(), "{source}");
            drop(kept);
            local.drain(drop);
        }
    }

    /// Returns a local for the observed steps of the test's own thread; it exists forever.
    fn watched<T>(source: Source, make: fn() -> T) -> &'static Local<T> {
        Box::leak(Box::new(Local::with_source(source, make).expect("an available source")))
    }

    /// Returns the locks of all shards of IDs: the state, and `true` if the shard is closed.
    fn locks<T, F>(local: &Local<T, F>) -> Vec<(i64, bool)> {
        let State::Claimed(block, Some(source)) = local.handle.state() else { return Vec::new() };
        let shard = |id| -> NonNull<Shard<T>> { shard_at(block.of_id(id)) };
        // SAFETY: shards stay mapped as long as the handle.
        let lock = |id| unsafe { &(*shard(id).as_ptr()).lock };
        (0..source.id_count()).map(|id| (lock(id).state(), lock(id).is_closed())).collect()
    }

    /// Makes the value of an ID, not only extra ones: occasionally no ID is available.
    fn make_one<T: Send>(local: &Local<T, impl Fn() -> T>) {
        while locks(local).iter().all(|lock| lock.0 == NONE) {
            local.with(|_| ());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "its local stays, which is a leak")]
    fn a_shard_is_a_member_before_it_has_a_value_and_as_long() {
        for source in sources() {
            let token = thread::token() as i64;
            let local = watched(source, || 0u64);
            let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let note = std::rc::Rc::clone(&seen);
            let _watching = steps::watch(move |step| {
                if let Step::Insert(id) | Step::Remove(id) = step {
                    let member = local.members.contains(id);
                    note.borrow_mut().push((member, locks(local)[id as usize]));
                }
                None
            });
            make_one(local);
            let inserted = [(false, (token, false))];
            assert_eq!(seen.borrow().as_slice(), inserted, "{source}");
            let no_members = || local.members.words().all(|(_, bits)| bits == 0);
            local.drain(|_| assert!(no_members(), "{source}: removed too late"));
            assert_eq!(seen.borrow()[1..], [(true, (token, true))], "{source}");
            assert!(locks(local).iter().all(|&lock| lock == (NONE, false)), "{source}");
        }
    }

    #[test]
    fn all_are_closed_before_the_one_fence_and_none_without_it() {
        for source in [Source::Table, Source::Kernel] {
            if source.prepare().is_err() {
                continue;
            }
            for refused in [false, true] {
                let local = watched(source, || 7u64);
                make_one(local);
                let all = || {
                    let mut visited = 0;
                    local.for_each(|value| visited += *value);
                    visited
                };
                let before = all();
                let of_ids = 7 * locks(local).iter().filter(|lock| lock.0 == READY).count() as u64;
                let fences = std::rc::Rc::new(std::cell::Cell::new(0));
                let count = std::rc::Rc::clone(&fences);
                let watching = steps::watch(move |step| {
                    if step != Step::Membarrier(Fence::OfAll) {
                        return None;
                    }
                    count.set(count.get() + 1);
                    let members = locks(local).into_iter().filter(|lock| lock.0 != NONE);
                    assert!(members.clone().count() > 0 && members.clone().all(|lock| lock.1));
                    Some(if refused { Err(steps::REFUSED) } else { Ok(()) })
                });
                let missed = if refused { of_ids } else { 0 };
                assert_eq!((all() + missed, fences.get()), (before, 1), "{source}");
                drop(watching);
                assert!(locks(local).iter().all(|lock| !lock.1), "{source}: closed forever");
                assert_eq!(all(), before, "{source}");
            }
        }
    }

    /// A section that took the lock before the fence may keep it for any time.
    #[test]
    fn a_holder_is_waited_for() {
        for source in sources() {
            let local = Local::with_source(source, || 0u64).expect("an available source");
            let (inside, both) = (std::sync::Barrier::new(2), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    local.with(|value| {
                        inside.wait();
                        // Usually enough time for the visitor to arrive.
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        *value = 5;
                        both.fetch_add(1, Relaxed);
                    });
                });
                inside.wait();
                let mut sum = 0;
                local.for_each(|value| {
                    assert_eq!(both.load(Relaxed), 1, "{source}: two have the value");
                    sum += *value;
                });
                assert_eq!(sum, 5, "{source}");
            });
        }
    }

    /// In a child of `fork`, a value that a thread of the parent was using may be in any state.
    #[test]
    fn a_value_in_use_at_a_fork_is_not_dropped() {
        static KEPT: std::sync::LazyLock<Arc<()>> = std::sync::LazyLock::new(Default::default);
        for source in sources() {
            let local = Local::with_source(source, || Arc::clone(&KEPT)).expect("available");
            make_one(&local);
            let State::Claimed(block, Some(_)) = local.handle.state() else { panic!("{source}") };
            let in_use = (0..source.id_count()).filter(|&id| {
                let shard: NonNull<Shard<Arc<()>>> = shard_at(block.of_id(id));
                // SAFETY: shards stay mapped as long as the handle.
                unsafe { (*shard.as_ptr()).lock.try_take(READY) }
            });
            let kept = in_use.count();
            let others = Arc::strong_count(&KEPT);
            let extra = local.extras().count();
            drop(local);
            assert!(kept > 0 && Arc::strong_count(&KEPT) == others - extra, "{source}");
        }
    }

    #[test]
    fn a_drain_that_panics_has_taken_the_value_out() {
        static KEPT: std::sync::LazyLock<Arc<()>> = std::sync::LazyLock::new(Default::default);
        let local = Local::new(|| Arc::clone(&KEPT));
        local.with(|_| ());
        let thrown = catch_unwind(AssertUnwindSafe(|| local.drain(|_| panic!("on purpose"))));
        assert!(thrown.is_err());
        assert_eq!(Arc::strong_count(&KEPT), 1);
        local.for_each(|_| panic!("it is gone"));
        drop(local);
        assert_eq!(Arc::strong_count(&KEPT), 1);
    }

    /// A second visitor would open the shards that the first one has closed. It does not reach its
    /// fence.
    #[test]
    fn one_visits_at_a_time() {
        for source in [Source::Table, Source::Kernel] {
            if source.prepare().is_err() {
                continue;
            }
            let local = watched(source, || 0u64);
            make_one(local);
            let (inside, left) = (std::sync::Barrier::new(2), AtomicUsize::new(0));
            let left: &'static AtomicUsize = Box::leak(Box::new(left));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    inside.wait();
                    let _watching = steps::watch(move |step| {
                        if step == Step::Membarrier(Fence::OfAll) {
                            assert_eq!(left.load(Relaxed), 1, "two visit");
                        }
                        None
                    });
                    local.for_each(|_| ());
                });
                let mut first = true;
                local.for_each(|_| {
                    if std::mem::take(&mut first) {
                        inside.wait();
                        // Usually enough time for the other visitor to arrive.
                        std::thread::sleep(std::time::Duration::from_millis(50));
                        left.store(1, Relaxed);
                    }
                });
                if first {
                    inside.wait();
                }
                assert!(!first, "{source}: nothing was visited");
            });
        }
    }

    /// Each would wait for the other's closure, and for the lock of visitors.
    #[test]
    fn two_visits_from_inside_both_panic() {
        let local = Local::new(|| 0);
        let both = std::sync::Barrier::new(2);
        let visit = || {
            local.with(|_| {
                both.wait();
                catch_unwind(AssertUnwindSafe(|| local.for_each(|_| ()))).is_err()
            })
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(visit);
            assert!(visit());
            assert!(other.join().expect("the panic was caught"));
        });
    }

    #[test]
    fn values_are_aligned() {
        #[repr(align(256))]
        struct Aligned(u8);
        let local = Local::new(|| Aligned(1));
        let address = |value: &mut Aligned| (&raw const value.0).addr();
        assert_eq!(local.with(address) % 256, 0);
        assert_eq!(local.with(|_| local.with(address)) % 256, 0);
    }
}
