//! The lock with its data, and its guards.

use std::cell::UnsafeCell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::{LockResult, TryLockError, TryLockResult};
use std::time::{Duration, Instant};

use percid::Source;
use percid::id::SourceError;

use super::guards::{RwLockReadGuard, RwLockWriteGuard};
use super::raw::{RawRwLock, WriteError};

/// A readers-writer lock for data that is read often and written rarely. Reading touches memory of
/// the running thread's ID only, so readers on different CPUs do not slow each other down.
///
/// The methods are those of [`std::sync::RwLock`], with timed ones besides.
///
/// ```
/// use percid_sync::RwLock;
///
/// static CONFIGURATION: RwLock<Vec<u32>> = RwLock::new(Vec::new());
///
/// CONFIGURATION.write().unwrap().push(7);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| assert_eq!(CONFIGURATION.read().unwrap().len(), 1));
///     }
/// });
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. There is one writer
///   or any number of readers.
/// * **Values**: a guard's thread may be moved to any CPU, and so end on another ID than it began.
/// * **Waiting**: readers wait for a writer, and for one that waits before them; a writer that ends
///   admits all readers that wait. A writer waits for the readers inside, and for other writers. So
///   no side starves the other. Threads that wait sleep. A thread that locks for reading twice
///   waits forever if a writer comes in between, and so does one that locks for writing while it
///   has the lock.
/// * **Signals**: not in a signal handler. The last reader takes a mutex if a writer waits.
/// * **Fork**: in the child of a `fork`, guards of the parent's other threads are never dropped. It
///   may read what nobody was writing; a writer waits forever if one of those threads was reading.
/// * **Memory**: the size of the object, plus 8 bytes for every ID that used it. If there is no
///   memory for an ID's word, its readers share one.
/// * **Cost**: a lock and unlock for reading are two additions as those of
///   [`Counter`](percid::Counter), and two loads of a word that only writers change. A writer runs
///   one fence of all CPUs, about 10 us, and reads a word of each ID. It runs none if the turn is
///   handed over to it by another writer.
/// * **Fence**: [`write`](RwLock::write) panics, and the other ways to write fail, if the process
///   has entered a sandbox that refuses `membarrier` since percid was first used.
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    data: UnsafeCell<T>,
}

// SAFETY: the lock's owner owns the data.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: readers share the data, and a writer has it alone, on any thread (the proof is in `raw`).
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

// A writer that panics poisons the lock.
impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

impl<T> RwLock<T> {
    /// Creates a lock.
    ///
    /// ```
    /// static LOCK: percid_sync::RwLock<u32> = percid_sync::RwLock::new(5);
    /// ```
    pub const fn new(data: T) -> RwLock<T> {
        RwLock { raw: RawRwLock::new(), data: UnsafeCell::new(data) }
    }

    /// Creates a lock whose readers are counted by `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid_sync::RwLock;
    ///
    /// let lock = RwLock::with_source(percid::Source::Atomic, 5)?;
    /// assert_eq!(*lock.read().unwrap(), 5);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source, data: T) -> Result<RwLock<T>, SourceError> {
        let raw = RawRwLock::with_source(source)?;
        Ok(RwLock { raw, data: UnsafeCell::new(data) })
    }

    /// Returns the data.
    ///
    /// ```
    /// assert_eq!(percid_sync::RwLock::new(5).into_inner().unwrap(), 5);
    /// ```
    ///
    /// # Errors
    ///
    /// A writer has panicked.
    pub fn into_inner(self) -> LockResult<T> {
        let RwLock { raw, data } = self;
        raw.check(data.into_inner())
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading. Waits for writers.
    ///
    /// ```
    /// let lock = percid_sync::RwLock::new(5);
    /// assert_eq!(*lock.read().unwrap(), 5);
    /// ```
    ///
    /// # Errors
    ///
    /// A writer has panicked; the error has the guard.
    #[inline(always)]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        if self.raw.enter() {
            // SAFETY: the thread has locked for reading.
            return Ok(unsafe { self.read_guard() });
        }
        self.finish_read()
    }

    /// Locks for reading if no writer has the lock or waits for it. Does not wait.
    ///
    /// ```
    /// let lock = percid_sync::RwLock::new(5);
    /// assert!(lock.try_read().is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// A writer has the lock or tries to get it, or one has panicked.
    #[inline(always)]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        self.read_if(self.raw.try_read())
    }

    /// Locks for reading. Waits for writers, at most so long.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let lock = percid_sync::RwLock::new(5);
    /// let writing = lock.write().unwrap();
    /// assert!(lock.read_timeout(Duration::from_millis(1)).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The time is over, or a writer has panicked.
    pub fn read_timeout(&self, time: Duration) -> TryLockResult<RwLockReadGuard<'_, T>> {
        self.read_if(self.raw.try_read() || self.raw.read(deadline(time)))
    }

    /// Locks for writing. Waits for all others.
    ///
    /// ```
    /// let lock = percid_sync::RwLock::new(5);
    /// *lock.write().unwrap() += 1;
    /// assert_eq!(*lock.read().unwrap(), 6);
    /// ```
    ///
    /// # Errors
    ///
    /// A writer has panicked; the error has the guard.
    ///
    /// # Panics
    ///
    /// If `membarrier` is refused that was not refused before.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        if let Err(why) = self.raw.write(None) {
            panic!("{why}");
        }
        // SAFETY: the thread has locked for writing.
        self.raw.check(unsafe { self.write_guard() })
    }

    /// Locks for writing if no thread has the lock. Readers that come meanwhile wait, and
    /// [`try_read`](RwLock::try_read) may fail.
    ///
    /// ```
    /// let lock = percid_sync::RwLock::new(5);
    /// let reading = lock.read().unwrap();
    /// assert!(lock.try_write().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// A thread has the lock, a writer has panicked, or `membarrier` is refused.
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        self.write_timeout(Duration::ZERO)
    }

    /// Locks for writing. Waits for all others, at most so long.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let lock = percid_sync::RwLock::new(5);
    /// let reading = lock.read().unwrap();
    /// assert!(lock.write_timeout(Duration::from_millis(1)).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The time is over, a writer has panicked, or `membarrier` is refused.
    pub fn write_timeout(&self, time: Duration) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        match self.raw.write(deadline(time)) {
            // SAFETY: the thread has locked for writing.
            Ok(()) => Ok(self.raw.check(unsafe { self.write_guard() })?),
            Err(WriteError::TimedOut | WriteError::FenceRefused) => Err(TryLockError::WouldBlock),
        }
    }

    /// Returns the data. Needs no lock, since nobody else has access.
    ///
    /// ```
    /// let mut lock = percid_sync::RwLock::new(5);
    /// *lock.get_mut().unwrap() = 6;
    /// assert_eq!(*lock.read().unwrap(), 6);
    /// ```
    ///
    /// # Errors
    ///
    /// A writer has panicked; the error has the data.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.raw.check(self.data.get_mut())
    }

    /// Returns `true` if a writer has panicked.
    ///
    /// ```
    /// assert!(!percid_sync::RwLock::new(5).is_poisoned());
    /// ```
    pub fn is_poisoned(&self) -> bool {
        self.raw.is_poisoned()
    }

    /// Forgets that a writer has panicked: the data was repaired, or was never broken.
    ///
    /// ```
    /// percid_sync::RwLock::new(5).clear_poison();
    /// ```
    pub fn clear_poison(&self) {
        self.raw.poison(false);
    }

    /// Locks for reading, after an entry that was not enough.
    #[cold]
    fn finish_read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        if !self.raw.stay_if_open() {
            self.raw.read_slowly(None);
        }
        // SAFETY: the thread has locked for reading.
        self.raw.check(unsafe { self.read_guard() })
    }

    #[inline(always)]
    fn read_if(&self, locked: bool) -> TryLockResult<RwLockReadGuard<'_, T>> {
        if !locked {
            return Err(TryLockError::WouldBlock);
        }
        // SAFETY: the thread has locked for reading.
        Ok(self.raw.check(unsafe { self.read_guard() })?)
    }

    /// Returns the guard of a reader.
    ///
    /// # Safety
    ///
    /// The thread has locked for reading.
    #[inline(always)]
    unsafe fn read_guard(&self) -> RwLockReadGuard<'_, T> {
        // SAFETY: the caller has locked, and this lock guards the data.
        unsafe { RwLockReadGuard::new(&self.raw, self.data()) }
    }

    /// Returns the guard of a writer.
    ///
    /// # Safety
    ///
    /// The thread has locked for writing.
    unsafe fn write_guard(&self) -> RwLockWriteGuard<'_, T> {
        // SAFETY: the caller has locked, and this lock guards the data.
        unsafe { RwLockWriteGuard::new(&self.raw, self.data()) }
    }

    #[inline(always)]
    fn data(&self) -> NonNull<T> {
        // SAFETY: the address of a cell is not null.
        unsafe { NonNull::new_unchecked(self.data.get()) }
    }

    #[cfg(test)]
    pub(crate) fn raw(&self) -> &RawRwLock {
        &self.raw
    }
}

/// Returns the end of the time; `None` if it lies beyond the clock's end.
fn deadline(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(data: T) -> RwLock<T> {
        RwLock::new(data)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => shown.field("data", &&*guard),
            Err(TryLockError::Poisoned(error)) => shown.field("data", &&**error.get_ref()),
            Err(TryLockError::WouldBlock) => shown.field("data", &format_args!("<locked>")),
        };
        shown.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}
