//! The lock without data.
//!
//! # Protocol and proof
//!
//! A reader counts itself, runs [`fence::light`], and tests if the lock is closed. A writer closes
//! it, runs [`fence::all`], and waits until no reader is counted.
//!
//! The light fence is nothing but a barrier for the compiler in most processes. The lock's state says
//! if it is known to be: [`FENCED`] is set until then, and forever where it is not. Readers that find
//! the state zero need to test nothing else; others run the fence and load the state again.
//!
//! *No reader is inside with a writer.* Take a reader that found the lock open, and a writer. If the
//! reader has not seen the writer's store, the writer's passes after the fence count the reader
//! ([`fence`](percid::fence)), so the writer waits for its exit
//! ([the proof of the sum](crate::readers)). If it has seen the store that opened the lock after
//! that writer's turn, everything of that turn happens before, since the store releases and the
//! reader's load acquires. Between the two the lock is closed.
//!
//! *A turn that is handed over* finds the lock closed since an earlier writer's fence. The readers
//! that this fence did not reveal have found the lock closed; those that were admitted in between
//! were counted by the thread that handed over, under the mutex. So it needs no fence.
//!
//! *Admitted readers* were counted for them by the writer that ended its turn, before the next
//! writer's passes.
//!
//! *No wake-up is lost.* A reader that leaves subtracts itself, runs [`fence::light`], and loads
//! the state. If it misses the writer's store, the writer's passes do not count it any more.
//! Otherwise it takes the mutex and notifies: either the writer's passes, which run under the
//! mutex, come later and do not count it, or the writer waits already. A reader that is refused
//! leaves in the same way.
//!
//! *If the fence is refused*, the writer ends its turn: it never uses the data.

use std::fmt;
use std::sync::atomic::{
    AtomicU8,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence,
};
use std::sync::{LockResult, PoisonError};
use std::time::Instant;

use percid::Source;
use percid::id::SourceError;

use super::queue::{Locked, Queue};
use crate::fence;
use crate::readers::Readers;

/// The bit of a lock whose readers must run [`fence::light`].
const FENCED: u8 = 1;
/// The bit of a lock that readers must not enter. It changes under the mutex of the queue.
const CLOSED: u8 = 2;
/// The bit of a lock whose writer panicked, until that is cleared. The lock orders it, as it does
/// the data.
const POISONED: u8 = 4;

/// A readers-writer lock without data: for structures that guard their data themselves, and with
/// the feature `lock_api` for `lock_api::RwLock`. [`RwLock`](crate::RwLock) has the contract.
///
/// ```
/// use percid_sync::RawRwLock;
///
/// let lock = RawRwLock::new();
/// assert!(lock.try_read());
/// assert!(lock.try_read(), "any number of readers");
/// lock.read_unlock();
/// lock.read_unlock();
/// ```
pub struct RawRwLock {
    readers: Readers,
    state: AtomicU8,
    queue: Queue,
}

/// The reason why a writer did not get a lock.
///
/// ```
/// use percid_sync::{RawRwLock, WriteError};
///
/// let lock = RawRwLock::new();
/// assert!(lock.try_read());
/// assert_eq!(lock.write(Some(std::time::Instant::now())), Err(WriteError::TimedOut));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// Other threads had the lock until the end of the time.
    TimedOut,
    /// The process may not fence any more: it has entered a sandbox that refuses `membarrier` after
    /// locks were used.
    FenceRefused,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WriteError::TimedOut => "cannot lock: the time is over",
            WriteError::FenceRefused => {
                "cannot lock for writing: membarrier is refused; enter the sandbox earlier"
            }
        })
    }
}

impl std::error::Error for WriteError {}

impl RawRwLock {
    /// Creates a lock that nobody has.
    ///
    /// ```
    /// static LOCK: percid_sync::RawRwLock = percid_sync::RawRwLock::new();
    /// ```
    #[must_use]
    pub const fn new() -> RawRwLock {
        RawRwLock::with_readers(Readers::new())
    }

    /// Creates a lock whose readers are counted by `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid_sync::RawRwLock;
    ///
    /// let lock = RawRwLock::with_source(percid::Source::Atomic)?;
    /// assert!(lock.try_read());
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source) -> Result<RawRwLock, SourceError> {
        Ok(RawRwLock::with_readers(Readers::with_source(source)?))
    }

    const fn with_readers(readers: Readers) -> RawRwLock {
        RawRwLock { readers, state: AtomicU8::new(FENCED), queue: Queue::new() }
    }

    /// Locks for reading if no writer has the lock or waits for it. Returns `true` if it did.
    ///
    /// ```
    /// assert!(percid_sync::RawRwLock::new().try_read());
    /// ```
    #[inline(always)]
    pub fn try_read(&self) -> bool {
        self.enter() || self.stay_if_open()
    }

    /// Counts a reader. Returns `true` if it is inside, and the lock is not poisoned. Otherwise
    /// [`stay_if_open`](RawRwLock::stay_if_open) must follow.
    #[inline(always)]
    pub(super) fn enter(&self) -> bool {
        self.readers.enter();
        // This is `fence::light`, if the state is zero.
        compiler_fence(SeqCst);
        // Acquire: pairs with the store that opens the lock after a writer's turn.
        self.state.load(Acquire) == 0
    }

    /// Ends the entry of a reader: it stays inside if the lock is open. Returns `true` if it is.
    #[cold]
    #[inline(never)]
    pub(super) fn stay_if_open(&self) -> bool {
        let open = !self.fence_and_test();
        if !open {
            self.read_unlock();
        }
        open
    }

    /// Runs [`fence::light`], and returns `true` if the lock is closed.
    fn fence_and_test(&self) -> bool {
        fence::light();
        if fence::is_asymmetric() {
            self.state.fetch_and(!FENCED, Relaxed);
        }
        // Acquire: as in `enter`.
        self.state.load(Acquire) & CLOSED != 0
    }

    /// Locks for reading. Waits for writers, until a deadline if there is one. Returns `true` if it
    /// did.
    ///
    /// ```
    /// assert!(percid_sync::RawRwLock::new().read(None));
    /// ```
    #[inline(always)]
    pub fn read(&self, deadline: Option<Instant>) -> bool {
        self.try_read() || self.read_slowly(deadline)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn read_slowly(&self, deadline: Option<Instant>) -> bool {
        let waiting = self.queue.lock();
        if self.is_closed() {
            return self.queue.wait_for_admission(waiting, deadline);
        }
        // A writer that closes the lock later does so under the mutex, and counts this reader.
        self.readers.admit(1);
        true
    }

    /// Ends reading. It may be called by another thread than the one that locked.
    ///
    /// ```
    /// let lock = percid_sync::RawRwLock::new();
    /// assert!(lock.try_read());
    /// lock.read_unlock();
    /// ```
    ///
    /// Without a reader the lock is useless afterwards: a writer may wait forever. It stays sound
    /// only for data that is not used then.
    #[inline(always)]
    pub fn read_unlock(&self) {
        self.readers.leave();
        // This is `fence::light`, if the state is zero.
        compiler_fence(SeqCst);
        if self.state.load(Relaxed) != 0 {
            self.notify_if_closed();
        }
    }

    #[cold]
    #[inline(never)]
    fn notify_if_closed(&self) {
        if self.fence_and_test() {
            self.queue.notify_departure();
        }
    }

    /// Locks for writing. Waits for all others, until a deadline if there is one.
    ///
    /// ```
    /// let lock = percid_sync::RawRwLock::new();
    /// lock.write(None)?;
    /// assert!(!lock.try_read());
    /// lock.write_unlock();
    /// # Ok::<(), percid_sync::WriteError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The time is over, or the process may not fence.
    pub fn write(&self, deadline: Option<Instant>) -> Result<(), WriteError> {
        let waiting = self.queue.wait_for_turn(deadline).ok_or(WriteError::TimedOut)?;
        let waiting = self.close(waiting)?;
        self.wait_for_readers(waiting, deadline)
    }

    /// Closes the lock for readers, unless it is closed.
    fn close<'q>(&'q self, waiting: Locked<'q>) -> Result<Locked<'q>, WriteError> {
        if self.is_closed() {
            return Ok(waiting);
        }
        self.state.fetch_or(CLOSED, Relaxed);
        drop(waiting);
        let fenced = fence::all();
        let waiting = self.queue.lock();
        match fenced {
            Ok(()) => Ok(waiting),
            Err(_) => {
                // The next writer must not rely on a fence that did not run.
                self.open();
                self.end_turn(waiting);
                Err(WriteError::FenceRefused)
            }
        }
    }

    fn wait_for_readers<'q>(
        &'q self,
        mut waiting: Locked<'q>,
        deadline: Option<Instant>,
    ) -> Result<(), WriteError> {
        while !self.readers.none() {
            match self.queue.wait_for_departure(waiting, deadline) {
                Some(again) => waiting = again,
                None => {
                    self.write_unlock();
                    return Err(WriteError::TimedOut);
                }
            }
        }
        Ok(())
    }

    /// Ends writing: readers that wait are inside, and the next writer has its turn.
    ///
    /// ```
    /// let lock = percid_sync::RawRwLock::new();
    /// lock.write(None)?;
    /// lock.write_unlock();
    /// assert!(lock.try_read());
    /// # Ok::<(), percid_sync::WriteError>(())
    /// ```
    pub fn write_unlock(&self) {
        self.end_turn(self.queue.lock());
    }

    fn end_turn(&self, waiting: Locked<'_>) {
        self.queue.end_turn(waiting, |readers| self.readers.admit(readers), || self.open());
    }

    fn open(&self) {
        // Release: readers that find the lock open see what the writer did.
        self.state.fetch_and(!CLOSED, Release);
    }

    /// Returns about how many readers are inside.
    ///
    /// ```
    /// let lock = percid_sync::RawRwLock::new();
    /// assert!(lock.try_read());
    /// assert_eq!(lock.reader_count(), 1);
    /// ```
    pub fn reader_count(&self) -> usize {
        usize::try_from(self.readers.estimate()).unwrap_or(0)
    }

    /// Returns `true` if a writer has the lock or waits for it.
    ///
    /// ```
    /// assert!(!percid_sync::RawRwLock::new().is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.state.load(Relaxed) & CLOSED != 0
    }

    /// Notes that a writer panicked, or that this is forgotten.
    pub(super) fn poison(&self, poisoned: bool) {
        if poisoned {
            self.state.fetch_or(POISONED, Relaxed);
        } else {
            self.state.fetch_and(!POISONED, Relaxed);
        }
    }

    /// Returns `true` if a writer panicked.
    pub(super) fn is_poisoned(&self) -> bool {
        self.state.load(Relaxed) & POISONED != 0
    }

    /// Returns a guard or the data, as an error if a writer panicked.
    pub(super) fn check<G>(&self, guard: G) -> LockResult<G> {
        if self.is_poisoned() { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }

    #[cfg(test)]
    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl Default for RawRwLock {
    fn default() -> RawRwLock {
        RawRwLock::new()
    }
}

impl fmt::Debug for RawRwLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRwLock")
            .field("readers", &self.reader_count())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
