//! The object: its values by ID.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use super::make::sealed::Make;
use super::shard::{Extra, Shard, shard_at};
use crate::arena::STRIDE;
use crate::handle::{Handle, Needs, State};
use crate::id::{Source, SourceError};
use crate::push_list;
use crate::sys::memory;
use crate::visit_lock::VisitLock;

/// A value of type `T` for every ID that uses one, and operations on its fields: per-ID data for
/// structures of your own.
///
/// An operation reads and writes fields of the running thread's value in one restartable section:
/// it is done as a whole, with the ID's value to itself, or not at all. No locked instruction is
/// needed. The fields are [`Word`](super::Word)s, [`Pointer`](super::Pointer)s and [`Bytes`](super::Bytes); they are named by
/// [`field!`](crate::field).
///
/// ```
/// use percid::PerId;
/// use percid::per_id::Word;
///
/// struct Traffic {
///     packets: Word,
///     bytes: Word,
/// }
/// static TRAFFIC: PerId<Traffic> =
///     PerId::new(|| Traffic { packets: Word::new(0), bytes: Word::new(0) });
///
/// TRAFFIC.add(percid::field!(Traffic, packets), 1)?;
/// TRAFFIC.add(percid::field!(Traffic, bytes), 1500)?;
/// let bytes: i64 = TRAFFIC.iter().map(|(_, traffic)| traffic.bytes.load()).sum();
/// assert_eq!(bytes, 1500);
/// # Ok::<(), percid::per_id::NoMemory>(())
/// ```
///
/// The same program works with every [`Source`]: where there are no sections, or the thread has no
/// ID, an operation holds a value by a locked instruction for a moment.
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. Two operations on
///   one value never overlap. An operation may use another value than the one before, since a
///   thread may move; each returns the value that it worked on.
/// * **Values** that belong to no ID: an operation works on one of these if it was interrupted or
///   moved eight times in a row, if the thread can have no ID, or if its ID's value is
///   [held](super::Visit). [`iter`](PerId::iter) and [`visit`](PerId::visit) include them.
/// * **Waiting**: operations do not wait. `visit` waits for other visits of the object, and
///   [`settle`](PerId::settle) for operations that hold a value.
/// * **Signals**: operations are async-signal-safe if `make` is, also in a handler that interrupts
///   one of them, and preserve `errno`.
/// * **Fork**: the child has a copy of every value. Values that other threads of the parent were
///   making or holding at the time stay out of use in the child.
/// * **Memory**: 32 bytes for the object if `make` captures nothing; for every ID that used it the size of `T` and 8 bytes,
///   rounded up to a power of two; at least a page for each value without an ID. Values of several
///   objects share an ID's cache lines. Creating an object is a constant, whatever the number of
///   CPUs.
/// * **Cost**: an addition about 25 instructions, two of them stores, none locked; with
///   [`Source::Atomic`] a call and one locked instruction.
#[repr(C)]
pub struct PerId<T, F = fn() -> T> {
    pub(super) handle: Handle,
    pub(super) make: F,
    pub(super) extras: AtomicPtr<Extra<T>>,
    pub(super) visits: VisitLock,
    values: PhantomData<T>,
}

// SAFETY: values are shared by threads, and may be made and dropped by different ones. Several
// threads may call `make` at the same time, through a shared reference.
unsafe impl<T: Send + Sync, F: Sync> Sync for PerId<T, F> {}
// SAFETY: the new owner makes and drops values, and drops `make`.
unsafe impl<T: Send + Sync, F: Send> Send for PerId<T, F> {}

impl<T, F> PerId<T, F> {
    const FITS: () = {
        assert!(align_of::<T>() <= 64, "values are aligned to a cache line at most");
        assert!(size_of::<Shard<T>>() <= STRIDE, "a value is larger than the memory of an ID");
    };

    /// Creates an object whose values are made by `make`.
    pub(crate) const fn made_by(make: F) -> PerId<T, F> {
        PerId {
            handle: Handle::new(),
            make,
            extras: AtomicPtr::new(ptr::null_mut()),
            visits: VisitLock { visitor: AtomicU64::new(0) },
            values: PhantomData,
        }
    }

    /// Returns the word of the object, for a section.
    #[inline(always)]
    pub(crate) fn word(&self) -> usize {
        self.handle.word()
    }

    /// The offset of a value from the start of its shard.
    pub(crate) const VALUE: usize = Shard::<T>::VALUE;

    /// Returns the extra shards.
    pub(super) fn extras(&self) -> impl Iterator<Item = &Shard<T>> {
        let mut next = push_list::first(&self.extras);
        std::iter::from_fn(move || {
            // SAFETY: extras are not moved or unmapped until the object is dropped; `next` is never
            // changed after the extra was published.
            let extra = unsafe { NonNull::new(next)?.as_ref() };
            next = extra.link.next;
            Some(&extra.shard)
        })
    }
}

impl<T: Send + Sync, F: Fn() -> T> PerId<T, F> {
    /// Creates an object whose values are made by `make` when an ID first uses one. It will use the
    /// source of the process (see [`init`](crate::init)).
    ///
    /// `make` may run at any operation, also of a signal handler.
    ///
    /// ```
    /// use percid::{PerId, per_id::Word};
    ///
    /// static BALANCE: PerId<Word> = PerId::new(|| Word::new(100));
    /// ```
    pub const fn new(make: F) -> PerId<T, F> {
        const { Self::FITS };
        PerId::made_by(make)
    }

    /// Creates an object like [`new`](PerId::new) that uses `source`, whatever the process has
    /// chosen.
    ///
    /// ```
    /// use percid::{PerId, Source, per_id::Word};
    ///
    /// let balance = PerId::with_source(Source::Atomic, || Word::new(0))?;
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used, or not with the fence that visits need.
    pub fn with_source(source: Source, make: F) -> Result<PerId<T, F>, SourceError> {
        let mut object = PerId::new(make);
        object.use_source(source)?;
        Ok(object)
    }
}

impl<T: Send + Sync, F> PerId<T, F> {
    /// Returns the value of an ID; `None` if that ID has not used one, or while it is being made.
    ///
    /// ```
    /// use percid::{PerId, per_id::Word};
    ///
    /// let words = PerId::new(|| Word::new(5));
    /// assert!(words.get(0).is_none());
    /// ```
    #[inline]
    pub fn get(&self, id: u32) -> Option<&T> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                // SAFETY: the block of this object; the memory of every ID that was used is open.
                unsafe { shard_at::<T>(block.of_id(id)) }.value()
            }
            _ => None,
        }
    }

    /// Returns the values of all IDs, with their IDs, and those that belong to no ID. They may
    /// change at any time: see [`visit`](PerId::visit).
    ///
    /// ```
    /// use percid::{PerId, per_id::Word};
    ///
    /// let words = PerId::new(|| Word::new(5));
    /// assert_eq!(words.iter().count(), 0);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Option<u32>, &T)> {
        let of_ids = self.values_from(0).map(|(id, value)| (Some(id), value));
        of_ids.chain(self.extras().filter_map(|extra| Some((None, extra.value()?))))
    }

    /// Returns the values of the IDs from `first` on.
    pub(super) fn values_from(&self, first: u32) -> impl Iterator<Item = (u32, &T)> {
        let end = match self.handle.state() {
            State::Claimed(_, Some(source)) => source.id_count(),
            _ => 0,
        };
        (first..end).filter_map(|id| Some((id, self.get(id)?)))
    }

    /// Returns the ID of a value that an operation returned; `None` if it belongs to no ID.
    ///
    /// ```
    /// use percid::{PerId, per_id::Word};
    ///
    /// let words = PerId::new(|| Word::new(0));
    /// let word = words.add(percid::per_id::Field::whole(), 1)?;
    /// println!("done on ID {:?}", words.id_of(word));
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    pub fn id_of(&self, value: &T) -> Option<u32> {
        let State::Claimed(block, Some(source)) = self.handle.state() else { return None };
        let distance = ptr::from_ref(value).addr().wrapping_sub(block.0 + Shard::<T>::VALUE);
        let id = (distance / STRIDE).checked_sub(1)?;
        (distance.is_multiple_of(STRIDE) && id < source.id_count() as usize).then_some(id as u32)
    }
}

impl<T, F: Make<T>> PerId<T, F> {
    /// Claims the memory of a new object, with a source of its own.
    pub(crate) fn use_source(&mut self, source: Source) -> Result<(), SourceError> {
        self.handle = Handle::with_source(source, Needs::Fence, self.make.shard_bytes())?;
        Ok(())
    }
}

impl<T, F> Drop for PerId<T, F> {
    fn drop(&mut self) {
        // SAFETY: a function makes the values, so their shards have the size of their type; an
        // object that is dropped is not used any more.
        unsafe { self.release(size_of::<Shard<T>>(), size_of::<Shard<T>>()) };
    }
}

impl<T, F> PerId<T, F> {
    /// Drops all values and frees the memory.
    ///
    /// # Safety
    ///
    /// The maker's shards have `bytes` bytes, those without an ID `extra_bytes`, and the object is
    /// not used any more.
    pub(crate) unsafe fn release(&mut self, bytes: usize, extra_bytes: usize) {
        if let State::Claimed(block, Some(source)) = self.handle.state() {
            for id in 0..source.id_count() {
                // SAFETY: the block of this object; `&mut self` guarantees that no other thread
                // uses its shards.
                unsafe { shard_at::<T>(block.of_id(id)).drop_value() };
            }
        }
        let mut next = push_list::first(&self.extras);
        while let Some(extra) = NonNull::new(next) {
            // SAFETY: `&mut self` guarantees that no other thread uses the extras; each is a
            // mapping of its own.
            unsafe {
                next = extra.as_ref().link.next;
                extra.as_ref().shard.drop_value();
                memory::unmap(extra.cast(), Extra::<T>::bytes(extra_bytes));
            }
        }
        // SAFETY: `&mut self` proves that no operation on this object is running or will run.
        unsafe { self.handle.release(bytes) };
    }
}

impl<T: fmt::Debug + Send + Sync, F> fmt::Debug for PerId<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
