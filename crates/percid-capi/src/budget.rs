//! Budgets.

use std::ffi::c_int;

use percid_sync::Exceeded;

use crate::barrier::guard;
use crate::errno::{self, preserved};
use crate::registry::{Object, Registry};
use crate::source::source;

/// A number of units, such as bytes of memory, that is charged and released by many threads and
/// never exceeded, not by one unit.
///
/// Made by percid_budget_create().
///
/// Threads: any number of threads may use it at once. A thread may release what another one has
/// charged.
/// Exactness: the units that are charged and not released are never more than the limit. A charge
/// is refused if there is no room for it, or if other threads move credits at that moment.
/// Waiting: nothing waits as long as there is room. A charge without room waits for another thread
/// that collects the credits of the IDs.
/// Signals: not in a signal handler.
/// Fork: the child has a copy, in which all units are still charged.
/// Memory: about 200 bytes, and 16 bytes for every ID that used it. If there is none for an ID, its
/// threads charge a shared number.
/// Cost: as long as an ID has credit, a charge is a call and one conditional store in a section, and
/// a second one if the thread used another budget in between; a release is one addition. Near the
/// limit both are an atomic operation on a shared word. A charge without room runs a fence of all
/// CPUs, about 10 us for every 64 IDs, if some ID has credit.
#[derive(Debug)]
pub struct Budget {
    inner: percid_sync::Budget,
}

static BUDGETS: Registry<Budget> = Registry::new();

impl Object for Budget {
    type Inner = Budget;
    const TYPE: u64 = 48;
}

/// Stores a new budget of `limit` units in `budget`, of which nothing is charged. Limits above
/// INT64_MAX are that. Each ID takes units from the limit in batches of a 1024th of it.
///
/// Returns 0, -EINVAL for NULL, or -ENOMEM; on error `budget` becomes NULL.
///
/// # Safety
///
/// `budget` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_create(budget: *mut *mut Budget, limit: u64) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { BUDGETS.create(budget, || Ok(Budget { inner: percid_sync::Budget::new(limit) })) }
}

/// Stores a new budget like percid_budget_create(), with a source that is independent of the
/// process's, for measurements and tests; and with batches of `batch` units. Larger batches are
/// faster, and percid_budget_approximate() is less exact.
///
/// Returns 0, -EINVAL for NULL or a number that is not a source's, -ENOMEM, or the reason why the
/// source cannot be used, as percid_source_prepare() does; on error `budget` becomes NULL.
///
/// # Safety
///
/// `budget` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_create_with_source(
    budget: *mut *mut Budget,
    source: c_int,
    limit: u64,
    batch: u64,
) -> c_int {
    let make = || {
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        let inner = percid_sync::Budget::with_source(source, limit, batch);
        Ok(Budget { inner: inner.map_err(errno::of_source_error)? })
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { BUDGETS.create(budget, make) }
}

/// Stores a new budget like percid_budget_create(), with batches of `batch` units.
///
/// # Safety
///
/// `budget` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_create_with_batch(
    budget: *mut *mut Budget,
    limit: u64,
    batch: u64,
) -> c_int {
    let make = || Ok(Budget { inner: percid_sync::Budget::with_batch(limit, batch) });
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { BUDGETS.create(budget, make) }
}

/// Charges units.
///
/// Returns 0; -EDQUOT if there is no room for them, and then nothing was charged; -EINVAL for NULL;
/// -EBADF if the budget is destroyed.
///
/// # Safety
///
/// `budget` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_try_charge(budget: *mut Budget, units: u64) -> c_int {
    let charge = |budget: &Budget| match budget.inner.try_charge(units) {
        Ok(()) => 0,
        Err(Exceeded) => -libc::EDQUOT,
    };
    // SAFETY: the caller guarantees a handle.
    unsafe {
        Registry::with(budget, |budget| preserved(|| guard(-libc::EFAULT, || charge(budget))))
    }
}

/// Releases units that were charged, by any thread. Releasing units that were not charged raises the
/// limit by them.
///
/// Returns 0; -EINVAL for NULL, and for more units than the limit, of which none are released;
/// -EBADF if the budget is destroyed.
///
/// # Safety
///
/// `budget` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_release(budget: *mut Budget, units: u64) -> c_int {
    let release = |budget: &Budget| {
        if units > budget.inner.limit() {
            return -libc::EINVAL;
        }
        guard(-libc::EFAULT, || {
            budget.inner.release(units);
            0
        })
    };
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::with(budget, release) }
}

/// Returns the limit; 0 if there is no such budget. Async-signal-safe.
///
/// # Safety
///
/// `budget` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_limit(budget: *const Budget) -> u64 {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(budget) }.map_or(0, |budget| budget.inner.limit())
}

/// Returns the units that are charged or lie in the credits of IDs: one load. It is never less than
/// what is charged (except for releases under way), and more by three batches at most for every ID.
/// 0 if there is no such budget. Async-signal-safe.
///
/// # Safety
///
/// `budget` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_approximate(budget: *const Budget) -> u64 {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(budget) }.map_or(0, |budget| guard(0, || budget.inner.approximate()))
}

/// Returns the units that are charged: one load for every ID, under a mutex. It is exact if nothing
/// is charged or released at the same time; each of those may be contained or not. 0 if there is no
/// such budget.
///
/// # Safety
///
/// `budget` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_exact(budget: *const Budget) -> u64 {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(budget) }
        .map_or(0, |budget| preserved(|| guard(0, || budget.inner.exact())))
}

/// Destroys a budget, whatever is charged. No other thread may use it during the call.
///
/// Returns 0; -EINVAL for NULL; -EBADF if it was destroyed before. Its handle is still detected.
///
/// # Safety
///
/// `budget` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_budget_destroy(budget: *mut Budget) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { BUDGETS.destroy(budget) }
}
