//! Readers-writer locks.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use percid::capi::{announce_acquire, announce_release};
use percid_sync::{RawRwLock, WriteError};

use crate::barrier::guard;
use crate::errno::{self, preserved};
use crate::registry::{Object, Registry};
use crate::source::source;

/// A readers-writer lock for data that is read often and written rarely. Reading touches memory of
/// the running thread's ID only, so readers on different CPUs do not slow each other down.
///
/// Made by percid_rwlock_create().
///
/// Threads: any number of threads may use it at once. There is one writer or any number of readers.
/// A thread may release what another thread has locked, for reading and for writing.
/// Waiting: readers wait for a writer, and for one that waits before them; a writer that ends admits
/// all readers that wait. A writer waits for the readers inside, and for other writers. So no side
/// starves the other. Threads that wait sleep. A thread that locks for reading twice waits forever
/// if a writer comes in between, and so does one that locks for writing while it has the lock.
/// Order: what a thread did before it released the lock is visible to threads that lock it later, if
/// one of both was a writer.
/// Signals: not in a signal handler. The last reader takes a mutex if a writer waits.
/// Fork: in the child, what other threads of the parent had locked is never released. A writer waits
/// forever if one of them was reading, and all wait if one was writing.
/// Memory: about 200 bytes, and 8 bytes for every ID that used it. If there is no memory for an ID's
/// word, its readers share one.
/// Cost: a lock and unlock for reading are two calls, two additions as those of a counter, and two
/// loads of a word that only writers change. A writer runs one fence of all CPUs, about 10 us, and
/// reads a word of each ID; it runs none if another writer hands the lock over to it.
#[derive(Debug)]
pub struct Rwlock {
    lock: RawRwLock,
}

static LOCKS: Registry<Rwlock> = Registry::new();

impl Object for Rwlock {
    type Inner = Rwlock;
    const TYPE: u64 = 46;
}

/// Stores a new lock that no thread has in `lock`. Returns 0, -EINVAL for NULL, or -ENOMEM; on error
/// `lock` becomes NULL.
///
/// # Safety
///
/// `lock` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_create(lock: *mut *mut Rwlock) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { LOCKS.create(lock, || Ok(Rwlock { lock: RawRwLock::new() })) }
}

/// Stores a new lock like percid_rwlock_create(), whose readers are counted by a source that is
/// independent of the process's: for measurements and tests.
///
/// Returns 0, -EINVAL for NULL or a number that is not a source's, -ENOMEM, or the reason why the
/// source cannot be used, as percid_source_prepare() does; on error `lock` becomes NULL.
///
/// # Safety
///
/// `lock` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_create_with_source(
    lock: *mut *mut Rwlock,
    source: c_int,
) -> c_int {
    let make = || {
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        let lock = RawRwLock::with_source(source).map_err(errno::of_source_error)?;
        Ok(Rwlock { lock })
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { LOCKS.create(lock, make) }
}

/// Locks for reading. Waits for writers.
///
/// Returns 0; -EINVAL for NULL; -EBADF if the lock is destroyed.
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_read_lock(lock: *mut Rwlock) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, |lock| lock.read(None)) }
}

/// Locks for reading if no writer has the lock or waits for it. Does not wait.
///
/// Returns 0, -EBUSY if there is a writer, or an error of percid_rwlock_read_lock().
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_try_read_lock(lock: *mut Rwlock) -> c_int {
    let try_read = |lock: &Rwlock| match lock.lock.try_read() {
        true => lock.is_read(),
        false => -libc::EBUSY,
    };
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, |lock| guard(-libc::EFAULT, || try_read(lock))) }
}

/// Locks for reading. Waits for writers, at most for this number of nanoseconds.
///
/// Returns 0, -ETIMEDOUT if the time is over, or an error of percid_rwlock_read_lock().
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_timed_read_lock(
    lock: *mut Rwlock,
    nanoseconds: u64,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, |lock| lock.read(Some(nanoseconds))) }
}

/// Ends reading. Any thread may call it, once for each lock for reading: otherwise a later writer
/// waits forever, or writes while others read.
///
/// Returns 0; -EINVAL for NULL; -EBADF if the lock is destroyed.
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_read_unlock(lock: *mut Rwlock) -> c_int {
    let unlock = |lock: &Rwlock| {
        guard(-libc::EFAULT, || {
            announce_release(lock.readers());
            lock.lock.read_unlock();
            0
        })
    };
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, |lock| preserved(|| unlock(lock))) }
}

/// Locks for writing. Waits for all other threads that have the lock.
///
/// Returns 0; -EPERM if the process has entered a sandbox that refuses membarrier() since it first
/// used percid, and then the lock is as before; -EINVAL for NULL; -EBADF if the lock is destroyed.
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_write_lock(lock: *mut Rwlock) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, |lock| lock.write(None)) }
}

/// Locks for writing if no thread has the lock. Readers that come at the same time wait for this
/// call, and percid_rwlock_try_read_lock() may fail.
///
/// Returns 0, -EBUSY if a thread has the lock, or an error of percid_rwlock_write_lock().
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_try_write_lock(lock: *mut Rwlock) -> c_int {
    let try_write = |lock: &Rwlock| match lock.write(Some(0)) {
        error if error == -libc::ETIMEDOUT => -libc::EBUSY,
        other => other,
    };
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, try_write) }
}

/// Locks for writing. Waits for all other threads that have the lock, at most for this number of
/// nanoseconds.
///
/// Returns 0, -ETIMEDOUT if the time is over, or an error of percid_rwlock_write_lock().
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_timed_write_lock(
    lock: *mut Rwlock,
    nanoseconds: u64,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, |lock| lock.write(Some(nanoseconds))) }
}

/// Ends writing: readers that wait are inside, and the next writer has its turn.
///
/// Returns 0; -EPERM if no writer has the lock or waits for it; -EINVAL for NULL; -EBADF if the lock
/// is destroyed.
///
/// # Safety
///
/// `lock` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_write_unlock(lock: *mut Rwlock) -> c_int {
    let unlock = |lock: &Rwlock| {
        if !lock.lock.is_closed() {
            return -libc::EPERM;
        }
        guard(-libc::EFAULT, || {
            announce_release(lock.writers());
            lock.lock.write_unlock();
            0
        })
    };
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(lock, |lock| preserved(|| unlock(lock))) }
}

/// Destroys a lock. No other thread may use it during the call.
///
/// Returns 0; -EBUSY if a thread has the lock, and then it stays; -EINVAL for NULL; -EBADF if it was
/// destroyed before. Its handle is still detected. Costs the reading of one word for every ID that
/// used it.
///
/// # Safety
///
/// `lock` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_rwlock_destroy(lock: *mut Rwlock) -> c_int {
    let is_used = |lock: &Rwlock| lock.lock.is_closed() || lock.lock.reader_count() > 0;
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(lock.cast_const()) } {
        Ok(lock) if guard(true, || is_used(lock)) => -libc::EBUSY,
        // SAFETY: the caller guarantees a handle that no other thread uses.
        _ => unsafe { LOCKS.destroy(lock) },
    }
}

impl Rwlock {
    /// Locks for reading, within a time if there is one.
    #[inline(always)]
    fn read(&self, nanoseconds: Option<u64>) -> c_int {
        guard(-libc::EFAULT, || match self.lock.try_read() {
            true => self.is_read(),
            false => self.read_slowly(nanoseconds),
        })
    }

    #[cold]
    fn read_slowly(&self, nanoseconds: Option<u64>) -> c_int {
        let read = || self.lock.read(nanoseconds.and_then(deadline));
        if preserved(read) { self.is_read() } else { -libc::ETIMEDOUT }
    }

    /// Announces to race detectors that this thread has locked for reading. Returns 0.
    #[inline(always)]
    fn is_read(&self) -> c_int {
        announce_acquire(self.writers());
        0
    }

    /// Announces to race detectors that this thread has locked for writing. Returns 0.
    fn is_written(&self) -> c_int {
        announce_acquire(self.writers());
        announce_acquire(self.readers());
        0
    }

    /// Returns the key of what writers did, for race detectors.
    #[inline(always)]
    fn writers(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Returns the key of what readers did. It is another one, since readers follow no readers.
    #[inline(always)]
    fn readers(&self) -> usize {
        self.writers() + size_of::<u64>()
    }

    /// Locks for writing, within a time if there is one.
    fn write(&self, nanoseconds: Option<u64>) -> c_int {
        let write = || match self.lock.write(nanoseconds.and_then(deadline)) {
            Ok(()) => self.is_written(),
            Err(WriteError::TimedOut) => -libc::ETIMEDOUT,
            // `WriteError` may grow; the only other variant means that the fence is refused.
            Err(_) => -libc::EPERM,
        };
        guard(-libc::EFAULT, || preserved(write))
    }
}

/// Returns the end of a time from now; `None` if it lies beyond the clock's end.
fn deadline(nanoseconds: u64) -> Option<Instant> {
    Instant::now().checked_add(Duration::from_nanos(nanoseconds))
}
