//! Domains of read-copy-update.

use std::ffi::{c_int, c_void};

use percid::capi::{announce_acquire, announce_release};
use percid_sync::{NotFenced, ReadGuard};

use crate::barrier::{guard, uncancelled};
use crate::callback::{count, drained};
use crate::ends::{is_visiting, visiting};
use crate::errno::{self, preserved};
use crate::headroom;
use crate::registry::{Object, Registry};
use crate::source::source;

/// Maximum number of functions that may wait in a domain: their list fits into the memory that is
/// checked before it grows.
const MAX_LIMIT: usize = 4096;

/// Readers that are waited for: read-copy-update, in the shape of the kernel's SRCU.
///
/// Made by percid_domain_create(). A reader is between percid_domain_read_lock() and
/// percid_domain_read_unlock(). percid_domain_synchronize() waits until every reader that was inside
/// when it was called has left, so that what was removed before is used by nobody.
///
/// Threads: any number of threads may use it at once. No thread registers. Threads may end at any
/// time, but not inside: a reader that never leaves is waited for forever.
/// Nesting: a thread may be inside several times, also of several domains, and another thread may
/// end what it began. A thread that synchronizes, flushes or defers while it is inside waits for
/// itself, forever.
/// Waiting: readers never wait. While percid_domain_synchronize() waits for readers, it sleeps up to
/// a millisecond between two looks at them.
/// Signals: percid_domain_read_lock() and percid_domain_read_unlock() are async-signal-safe. The
/// rest is not.
/// Fork: in the child, readers that were other threads of the parent never leave; if there were any,
/// percid_domain_synchronize() waits forever. Functions that wait are copied, as all memory is.
/// Memory: about 250 bytes, 16 bytes for every ID that used it, and about 50 bytes for every
/// function that waits, whose number is limited.
/// Cost: entering and leaving are two calls, and two additions as those of a counter.
/// percid_domain_synchronize() runs one fence of all CPUs, about 10 us, and reads two words of each
/// ID. Threads that call it at the same time share its work.
#[derive(Debug)]
pub struct Domain {
    inner: percid_sync::Domain,
}

static DOMAINS: Registry<Domain> = Registry::new();

impl Object for Domain {
    type Inner = Domain;
    const TYPE: u64 = 47;
}

impl Domain {
    /// Returns the key of what readers did, for race detectors.
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// A function that waits, with its argument.
struct Deferred {
    function: unsafe extern "C-unwind" fn(argument: *mut c_void),
    argument: *mut c_void,
    /// The domain's key for race detectors.
    domain: usize,
}

// SAFETY: the caller of `percid_domain_defer` guarantees that any thread may call the function with
// the argument, which is only passed on.
unsafe impl Send for Deferred {}

impl Deferred {
    fn run(self) {
        announce_acquire(self.domain);
        // SAFETY: the caller of `percid_domain_defer` guarantees a function for this argument; it is
        // called once, since `self` is used up.
        unsafe { (self.function)(self.argument) };
    }
}

/// Stores a new domain without readers in `domain`, in which at most 1024 functions wait. Returns
/// 0, -EINVAL for NULL, or -ENOMEM; on error `domain` becomes NULL.
///
/// # Safety
///
/// `domain` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_create(domain: *mut *mut Domain) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { DOMAINS.create(domain, || Ok(Domain { inner: percid_sync::Domain::new() })) }
}

/// Stores a new domain like percid_domain_create(), in which at most `limit` functions wait: up to
/// 4096, and -EINVAL for more. With 0 percid_domain_defer() waits each time.
///
/// # Safety
///
/// `domain` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_create_bounded(
    domain: *mut *mut Domain,
    limit: usize,
) -> c_int {
    let make = || match limit {
        0..=MAX_LIMIT => Ok(Domain { inner: percid_sync::Domain::with_limit(limit) }),
        _ => Err(-libc::EINVAL),
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { DOMAINS.create(domain, make) }
}

/// Stores a new domain like percid_domain_create(), whose readers are counted by a source that is
/// independent of the process's: for measurements and tests.
///
/// Returns 0, -EINVAL for NULL or a number that is not a source's, -ENOMEM, or the reason why the
/// source cannot be used, as percid_source_prepare() does; on error `domain` becomes NULL.
///
/// # Safety
///
/// `domain` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_create_with_source(
    domain: *mut *mut Domain,
    source: c_int,
) -> c_int {
    let make = || {
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        let inner = percid_sync::Domain::with_source(source).map_err(errno::of_source_error)?;
        Ok(Domain { inner })
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { DOMAINS.create(domain, make) }
}

/// Begins to read, and returns the token with which percid_domain_read_unlock() must end it: 0 or 1.
/// -EINVAL for NULL; -EBADF if the domain is destroyed.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_read_lock(domain: *mut Domain) -> c_int {
    let enter = |domain: &Domain| guard(-libc::EFAULT, || domain.inner.read().into_raw() as c_int);
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(domain, enter) }
}

/// Ends reading, with the token that percid_domain_read_lock() has returned to this thread or
/// another one: once for each call of that.
///
/// Returns 0; -EINVAL for NULL, and for what is no token; -EBADF if the domain is destroyed.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety). `token` is a token of that domain, and was not used yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_read_unlock(domain: *mut Domain, token: c_int) -> c_int {
    let leave = |domain: &Domain| {
        let Some(token) = usize::try_from(token).ok().filter(|&token| token <= 1) else {
            return -libc::EINVAL;
        };
        guard(-libc::EFAULT, || {
            announce_release(domain.key());
            // SAFETY: the caller guarantees a token of this domain that was not used yet.
            drop(unsafe { ReadGuard::from_raw(&domain.inner, token) });
            0
        })
    };
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(domain, leave) }
}

/// Waits until every reader that is inside now has left.
///
/// Returns 0; -EPERM if the process has entered a sandbox that refuses membarrier() since it first
/// used percid: nothing is known about the readers then. -EINVAL for NULL; -EBADF if the domain is
/// destroyed.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_synchronize(domain: *mut Domain) -> c_int {
    let wait = |domain: &Domain| match domain.inner.synchronize() {
        Ok(()) => {
            announce_acquire(domain.key());
            0
        }
        Err(error) => refused(error),
    };
    // SAFETY: the caller guarantees a handle.
    unsafe {
        Registry::with(domain, |domain| preserved(|| uncancelled(-libc::EFAULT, || wait(domain))))
    }
}

/// Calls `function` with `argument` when every reader that is inside now has left: in a later call
/// of percid_domain_flush() or percid_domain_defer(), by any thread, or when the domain is destroyed.
///
/// If as many functions wait as may, it waits for the readers itself, and calls all functions that
/// wait, and this one. If membarrier() is refused, they go on waiting, and this one too, beyond the
/// limit.
///
/// The function must return: it must not throw, end its thread, or jump. It may use the domain, but
/// what would destroy it answers -EDEADLK.
///
/// Returns 0; -EINVAL for NULL; -EBADF if the domain is destroyed; -ENOMEM. On error the function is
/// not called.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety). `function` is NULL, or may be called with `argument` by any
/// thread, once, and returns.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_defer(
    domain: *mut Domain,
    function: Option<unsafe extern "C-unwind" fn(argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    let defer = |domain: &percid_sync::Domain, deferred: Deferred| {
        domain.defer(move || deferred.run());
        0
    };
    // SAFETY: the caller guarantees a handle, and a function for the argument.
    unsafe { deferring(domain, function, argument, defer) }
}

/// Defers a function like percid_domain_defer(), but never waits and calls no function.
///
/// Returns 0, -EAGAIN if as many functions wait as may, or an error of percid_domain_defer().
///
/// # Safety
///
/// The contract of [`percid_domain_defer`] holds.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_try_defer(
    domain: *mut Domain,
    function: Option<unsafe extern "C-unwind" fn(argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    let defer = |domain: &percid_sync::Domain, deferred: Deferred| {
        domain.try_defer(move || deferred.run()).map_or(-libc::EAGAIN, |()| 0)
    };
    // SAFETY: the caller guarantees a handle, and a function for the argument.
    unsafe { deferring(domain, function, argument, defer) }
}

/// Waits for the readers that are inside now, and calls all functions that were deferred before.
/// Returns their number: 0 at once if there are none. -EPERM if membarrier() is refused, and then
/// they go on waiting; -EINVAL for NULL; -EBADF if the domain is destroyed.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_flush(domain: *mut Domain) -> i64 {
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(domain.cast_const()) } {
        Ok(domain) => flush(domain),
        Err(error) => i64::from(error),
    }
}

/// Returns the number of functions that wait; 0 if there is no such domain.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_deferred_count(domain: *const Domain) -> usize {
    let number = |domain: &Domain| preserved(|| guard(0, || domain.inner.deferred_count()));
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(domain) }.map_or(0, number)
}

/// Returns about how many readers are inside; 0 if there is no such domain. It is exact if none
/// enters or leaves at the same time. Costs the reading of two words for every ID that used it.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_reader_count(domain: *const Domain) -> usize {
    let number = |domain: &Domain| guard(0, || domain.inner.reader_count());
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(domain) }.map_or(0, number)
}

/// Destroys a domain, and calls the functions that wait, and those that these defer in it. No other
/// thread may use it during the call.
///
/// Returns 0; -EBUSY if a reader is inside, or if the functions have deferred others in each of 100
/// calls, and then the domain stays, with the functions that wait; -EDEADLK if a deferred function
/// calls it; -EINVAL for NULL; -EBADF if it was destroyed before. Its handle is still detected.
///
/// # Safety
///
/// `domain` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_domain_destroy(domain: *mut Domain) -> c_int {
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(domain.cast_const()) } {
        Ok(found) if is_visiting(found) => -libc::EDEADLK,
        Ok(found) if guard(1, || found.inner.reader_count()) > 0 => -libc::EBUSY,
        // No reader is inside: if the fence is refused, the destruction calls the functions.
        Ok(found) if drained(|| flush(found)) == -libc::EBUSY => -libc::EBUSY,
        // SAFETY: the caller guarantees a handle that no other thread uses.
        _ => unsafe { DOMAINS.destroy(domain) },
    }
}

fn flush(domain: &Domain) -> i64 {
    let flush = || match domain.inner.flush() {
        Ok(number) => count(number),
        Err(error) => i64::from(refused(error)),
    };
    calling_functions(domain, i64::from(-libc::EFAULT), flush)
}

/// Defers a function of C by `defer`, or returns the error.
///
/// # Safety
///
/// The contract of [`percid_domain_defer`] holds.
unsafe fn deferring(
    domain: *const Domain,
    function: Option<unsafe extern "C-unwind" fn(argument: *mut c_void)>,
    argument: *mut c_void,
    defer: impl FnOnce(&percid_sync::Domain, Deferred) -> c_int,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let (domain, function) = match (unsafe { Registry::object(domain) }, function) {
        (Ok(domain), Some(function)) => (domain, function),
        (Ok(_), None) => return -libc::EINVAL,
        (Err(error), _) => return error,
    };
    if let Err(error) = preserved(headroom::ask) {
        return error;
    }
    let deferred = Deferred { function, argument, domain: domain.key() };
    calling_functions(domain, -libc::EFAULT, || defer(&domain.inner, deferred))
}

/// Runs `body`, which may call functions that were deferred.
fn calling_functions<R: Copy>(domain: &Domain, otherwise: R, body: impl FnOnce() -> R) -> R {
    visiting(domain, (), |()| preserved(|| uncancelled(otherwise, body)))
}

/// Returns the error of a refused fence.
fn refused(_: NotFenced) -> c_int {
    -libc::EPERM
}
