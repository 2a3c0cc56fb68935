//! Domains: readers, and those that wait for them.

use std::fmt;

use percid::Source;
use percid::id::SourceError;

use super::deferred::{Deferred, Queue};
use super::grace::Grace;
use crate::fence::Unfenced;

/// Functions that may wait in a domain, unless it is created with another number.
const DEFAULT_LIMIT: usize = 1024;

/// Readers that are waited for: read-copy-update, in the shape of the kernel's SRCU.
///
/// A reader holds a [`ReadGuard`]. [`synchronize`](Domain::synchronize) waits until every guard that
/// existed when it was called has been dropped, so that what was removed before is used by nobody.
/// [`RcuCell`](crate::RcuCell) is the safe way to use a domain for one value.
///
/// ```
/// use percid_sync::Domain;
///
/// static DOMAIN: Domain = Domain::new();
///
/// let reading = DOMAIN.read();
/// // Nothing that the reader can reach is freed.
/// drop(reading);
/// DOMAIN.synchronize()?;
/// # Ok::<(), percid_sync::NotFenced>(())
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. No thread registers.
///   Threads may end at any time; a guard that is forgotten is waited for forever.
/// * **Values**: guards nest, also those of different domains. A guard's thread may be moved to any
///   CPU, and so end on another ID than it began.
/// * **Waiting**: readers never wait. `synchronize` waits for readers, and so does
///   [`defer`](Domain::defer) if the queue is full. A thread that calls one of these while it has a
///   guard of the same domain waits forever. While it waits, it sleeps up to a millisecond between
///   two looks at the readers.
/// * **Signals**: [`read`](Domain::read) and dropping its guard are async-signal-safe. The other
///   methods are not.
/// * **Fork**: in the child of a `fork`, guards of the parent's other threads are never dropped. If
///   there were any, `synchronize` waits forever. Functions that wait are copied, as all memory is.
/// * **Memory**: the size of the object; 16 bytes for every ID that used it; the functions that
///   wait, whose number is limited.
/// * **Cost**: a guard is two additions as those of [`Counter`](percid::Counter). `synchronize` runs
///   one fence of all CPUs, about 10 us, and reads two words of each ID. Threads that call it at the
///   same time share its work: `n` of them run at most two fences more than one.
/// * **Fence**: `synchronize` fails if the process has entered a sandbox that refuses `membarrier`
///   since percid was first used. Deferred functions wait until the domain is dropped then.
///
/// Beside *liburcu*: its threads register, except in the flavour `bp`; its readers nest by a
/// thread-local number, and a guard must end on its thread. It wakes a waiting `synchronize` at
/// once, where this one looks again within a millisecond. Beside *crossbeam-epoch*: its guards
/// belong to their threads, its deferred functions run at some later pin of any thread, and nothing
/// limits their number or waits for them; a domain is chosen by a `Collector`.
pub struct Domain {
    grace: Grace,
    deferred: Queue,
}

/// A reader of a [`Domain`], until it is dropped. It may be sent to another thread.
///
/// ```
/// use percid_sync::Domain;
///
/// let domain = Domain::new();
/// let outer = domain.read();
/// let inner = domain.read();
/// drop(outer);
/// assert_eq!(domain.reader_count(), 1);
/// # drop(inner);
/// ```
#[must_use = "the reader leaves when the guard is dropped"]
#[derive(Debug)]
pub struct ReadGuard<'d> {
    domain: &'d Domain,
    parity: usize,
}

/// The error of a domain that cannot fence: the process has entered a sandbox that refuses
/// `membarrier` since it was first used. Nothing is known about the readers.
///
/// ```
/// assert!(percid_sync::NotFenced.to_string().contains("membarrier"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFenced;

impl fmt::Display for NotFenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot wait for readers: membarrier is refused; enter the sandbox earlier")
    }
}

impl std::error::Error for NotFenced {}

impl From<Unfenced> for NotFenced {
    fn from(_: Unfenced) -> NotFenced {
        NotFenced
    }
}

/// The error of [`Domain::try_defer`]: as many functions wait as may. It has the function.
///
/// ```
/// let domain = percid_sync::Domain::with_limit(0);
/// let full = domain.try_defer(|| ()).unwrap_err();
/// full.0();
/// ```
pub struct Full(pub Box<dyn FnOnce() + Send>);

impl fmt::Debug for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot defer: as many functions wait as may; call `synchronize`")
    }
}

impl std::error::Error for Full {}

impl Domain {
    /// Creates a domain without readers.
    ///
    /// ```
    /// static DOMAIN: percid_sync::Domain = percid_sync::Domain::new();
    /// ```
    #[must_use]
    pub const fn new() -> Domain {
        Domain::with_limit(DEFAULT_LIMIT)
    }

    /// Creates a domain in which at most `limit` deferred functions wait.
    ///
    /// ```
    /// static DOMAIN: percid_sync::Domain = percid_sync::Domain::with_limit(64);
    /// ```
    #[must_use]
    pub const fn with_limit(limit: usize) -> Domain {
        Domain { grace: Grace::new(), deferred: Queue::new(limit) }
    }

    /// Creates a domain whose readers are counted by `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid_sync::Domain;
    ///
    /// let domain = Domain::with_source(percid::Source::Atomic)?;
    /// drop(domain.read());
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source) -> Result<Domain, SourceError> {
        let deferred = Queue::new(DEFAULT_LIMIT);
        Ok(Domain { grace: Grace::with_source(source)?, deferred })
    }

    /// Begins to read.
    ///
    /// ```
    /// let domain = percid_sync::Domain::new();
    /// let reading = domain.read();
    /// assert_eq!(domain.reader_count(), 1);
    /// # drop(reading);
    /// ```
    #[inline(always)]
    pub fn read(&self) -> ReadGuard<'_> {
        ReadGuard { domain: self, parity: self.grace.enter() }
    }

    /// Waits until every guard that exists now has been dropped.
    ///
    /// ```
    /// let domain = percid_sync::Domain::new();
    /// domain.synchronize()?;
    /// # Ok::<(), percid_sync::NotFenced>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The process may not fence.
    pub fn synchronize(&self) -> Result<(), NotFenced> {
        Ok(self.grace.wait()?)
    }

    /// Runs a function when every guard that exists now has been dropped: in a later call of
    /// [`flush`](Domain::flush) or `defer`, by any thread, or when the domain is dropped.
    ///
    /// If the queue is full, it waits for a grace period and runs all functions that wait, and this
    /// one. If that is refused, the function still waits: the queue becomes longer than its limit.
    ///
    /// ```
    /// use percid_sync::Domain;
    ///
    /// let domain = Domain::new();
    /// let removed = Box::new(5);
    /// domain.defer(move || drop(removed));
    /// assert_eq!(domain.deferred_count(), 1);
    /// ```
    pub fn defer(&self, function: impl FnOnce() + Send + 'static) {
        if let Err(function) = self.deferred.push(Box::new(function)) {
            self.deferred.put_back(vec![function]);
            // A refusal leaves the functions in the queue.
            _ = self.flush();
        }
    }

    /// Defers a function like [`defer`](Domain::defer), but never waits.
    ///
    /// ```
    /// let domain = percid_sync::Domain::with_limit(1);
    /// assert!(domain.try_defer(|| ()).is_ok());
    /// assert!(domain.try_defer(|| ()).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// The queue is full.
    pub fn try_defer(&self, function: impl FnOnce() + Send + 'static) -> Result<(), Full> {
        self.deferred.push(Box::new(function)).map_err(Full)
    }

    /// Waits for a grace period, and runs all functions that were deferred before. Returns their
    /// number.
    ///
    /// ```
    /// let domain = percid_sync::Domain::new();
    /// domain.defer(|| println!("nobody reads it any more"));
    /// assert_eq!(domain.flush()?, 1);
    /// # Ok::<(), percid_sync::NotFenced>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The process may not fence. The functions still wait.
    pub fn flush(&self) -> Result<usize, NotFenced> {
        let functions = self.deferred.take();
        if functions.is_empty() {
            return Ok(0);
        }
        match self.grace.wait() {
            Ok(()) => Ok(run(functions)),
            Err(refused) => {
                self.deferred.put_back(functions);
                Err(refused.into())
            }
        }
    }

    /// Returns the number of functions that wait.
    ///
    /// ```
    /// assert_eq!(percid_sync::Domain::new().deferred_count(), 0);
    /// ```
    pub fn deferred_count(&self) -> usize {
        self.deferred.length()
    }

    /// Returns about how many readers there are.
    ///
    /// ```
    /// assert_eq!(percid_sync::Domain::new().reader_count(), 0);
    /// ```
    pub fn reader_count(&self) -> usize {
        self.grace.reader_count()
    }

    #[cfg(test)]
    pub(super) fn grace(&self) -> &Grace {
        &self.grace
    }
}

impl<'d> ReadGuard<'d> {
    /// Returns the domain.
    ///
    /// ```
    /// let domain = percid_sync::Domain::new();
    /// assert!(std::ptr::eq(domain.read().domain(), &domain));
    /// ```
    #[inline(always)]
    pub fn domain(&self) -> &'d Domain {
        self.domain
    }

    /// Turns the guard into a number, 0 or 1, from which [`from_raw`](ReadGuard::from_raw) makes it
    /// again: for interfaces that cannot hold a guard. Until then the reader stays.
    ///
    /// ```
    /// use percid_sync::{Domain, ReadGuard};
    ///
    /// let domain = Domain::new();
    /// let raw = domain.read().into_raw();
    /// assert_eq!(domain.reader_count(), 1);
    /// // SAFETY: the number is of a guard of this domain, and is used once.
    /// drop(unsafe { ReadGuard::from_raw(&domain, raw) });
    /// assert_eq!(domain.reader_count(), 0);
    /// ```
    #[inline(always)]
    #[must_use = "the reader stays until the guard is made again"]
    pub fn into_raw(self) -> usize {
        std::mem::ManuallyDrop::new(self).parity
    }

    /// Makes a guard of the number that [`into_raw`](ReadGuard::into_raw) has returned.
    ///
    /// # Safety
    ///
    /// * `raw` is the number of a guard of this domain.
    /// * No other guard is made of that number: as many are made as guards have become it.
    #[inline(always)]
    pub unsafe fn from_raw(domain: &'d Domain, raw: usize) -> ReadGuard<'d> {
        ReadGuard { domain, parity: raw }
    }
}

/// Runs functions. If one of them panics, those behind it are dropped without running.
fn run(functions: Vec<Deferred>) -> usize {
    let number = functions.len();
    functions.into_iter().for_each(|function| function());
    number
}

impl Drop for ReadGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.domain.grace.leave(self.parity);
    }
}

impl Drop for Domain {
    /// Runs the functions that wait: there are no guards any more.
    fn drop(&mut self) {
        run(self.deferred.take());
    }
}

impl Default for Domain {
    fn default() -> Domain {
        Domain::new()
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain")
            .field("readers", &self.reader_count())
            .field("deferred", &self.deferred_count())
            .finish_non_exhaustive()
    }
}
