//! Balancers.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::Mutex;

use super::error;
use super::maker::Maker;
use super::settings::{self, Settings, nanoseconds};
use crate::barrier::uncancelled;
use crate::errno::preserved;
use crate::headroom;
use crate::registry::{Object, Registry};

/// Moves memory to the threads that use it, on machines with several nodes (NUMA): the pages of
/// registered regions move to the nodes of their users. Needs no privileges, and does not depend on
/// the machine-wide switch.
///
/// It regularly *arms* pages of its regions, so that the next access to each is detected. A page
/// that is used from another node twice in a row moves there. Every decision is counted by region
/// and reason.
///
/// Threads: any number of threads may use it at once. Pages are moved by the balancer's own thread,
/// which percid_balancer_start() starts, or by the caller of percid_balancer_move_batch(). A thread
/// of the program that faults or maps memory during that time waits for at most one batch.
/// Signals: percid_region_touch(), percid_region_touch_all(), percid_id_regions_touch(),
/// percid_pool_regions_touch() and access to registered memory are async-signal-safe; the rest is
/// not. The balancer's own thread blocks all signals.
/// Fork: a child has all of the memory. Its balancer does nothing, faults at pages that were armed
/// are caught, and its regions may be unregistered. To balance the child, create another balancer.
/// Cost: with one node nothing is armed, mapped, started or caught. With several nodes about 0.2 us
/// for every page that is armed, and less than 3 % of the total time that the process's threads
/// run; a copy for every page that moves.
/// Memory: 6.6 bytes per page, or per 64 KiB of trapped memory, and 4 KiB; none with one node. Leak
/// checkers do not follow handles: unregister regions and destroy the balancer before they count.
#[derive(Debug)]
pub struct Balancer {
    pub(super) balancer: percid_numa::Balancer,
    /// Events that were taken from the balancer and did not fit into the caller's memory. Not
    /// accessed in a child of fork(): a thread of the parent may have been changing it.
    pub(super) events: ManuallyDrop<Mutex<VecDeque<percid_numa::Event>>>,
    maker: Maker,
}

/// Result of a pass.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    /// Pages that were armed.
    pub armed: u64,
    /// Regions that were left out.
    pub skipped: u64,
    /// Duration of the pass in nanoseconds.
    pub took_ns: u64,
}

/// Result of a batch of pages.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Pages that were moved.
    pub moved: u64,
    /// Pages that could not be moved; the report contains them by errno.
    pub failed: u64,
    /// 1 if more migrations are pending, otherwise 0.
    pub more: c_int,
}

static BALANCERS: Registry<Balancer> = Registry::new();

impl Object for Balancer {
    type Inner = Balancer;
    const TYPE: u64 = 38;
}

impl Balancer {
    fn new(balancer: percid_numa::Balancer) -> Balancer {
        let events = ManuallyDrop::new(Mutex::default());
        Balancer { balancer, events, maker: Maker::here() }
    }

    /// Returns `true` if this is a child of the process that created the balancer.
    pub(super) fn is_forked(&self) -> bool {
        self.maker.is_elsewhere()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if !self.is_forked() {
            // SAFETY: the list is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.events) };
        }
    }
}

/// Returns the result of `body` for the balancer of a handle, or the error of the handle.
///
/// # Safety
///
/// The contract of [`Registry::object`] holds.
pub(super) unsafe fn with_balancer(
    handle: *const Balancer,
    body: impl FnOnce(&Balancer) -> c_int,
) -> c_int {
    // SAFETY: the caller guarantees a handle, whose object is not destroyed during the call.
    match unsafe { Registry::object(handle) } {
        Ok(balancer) => preserved(|| uncancelled(-libc::EFAULT, || body(balancer))),
        Err(error) => error,
    }
}

/// Does the same as [`of`], for a body that allocates: `-ENOMEM` if there is no memory.
///
/// # Safety
///
/// The contract of [`Registry::object`] holds.
unsafe fn with_memory(handle: *const Balancer, body: impl FnOnce(&Balancer) -> c_int) -> c_int {
    // SAFETY: the caller guarantees a handle, whose object is not destroyed during the call.
    unsafe {
        with_balancer(handle, |balancer| {
            headroom::ask().map_or_else(|error| error, |()| body(balancer))
        })
    }
}

/// Stores a new balancer without regions in `balancer`, with these settings, or with the defaults
/// if `settings` is NULL.
///
/// Returns 0; -EINVAL if `balancer` is NULL, for an invalid size, rate, rule set or width, or
/// settings that percid_balancer_settings_init() has not filled; -ERANGE if the shortest period is
/// longer than the longest one, or the scan size an eighth of 2^63 bytes or more; -E2BIG if the
/// settings have members that this version of the library does not support, and they are not 0;
/// -ENOMEM. On error `balancer` becomes NULL.
///
/// # Safety
///
/// `balancer` is [memory](crate#safety) for a handle. `settings` is NULL or points to as many bytes
/// as the `size` in it says, all of them written.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_create(
    balancer: *mut *mut Balancer,
    settings: *const Settings,
) -> c_int {
    let make = || {
        let made = match settings.is_null() {
            true => percid_numa::Balancer::new(),
            // SAFETY: the caller guarantees a structure with as many written bytes as its `size`,
            // and it is not NULL.
            false => unsafe { settings::balancer(settings) }?,
        };
        Ok(Balancer::new(made))
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { BALANCERS.create(balancer, make) }
}

/// Returns 1 if there are several nodes with memory, so that there is something to balance,
/// otherwise 0. -EINVAL for NULL, -EBADF if the balancer is destroyed.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_has_nodes(balancer: *const Balancer) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe { with_balancer(balancer, |balancer| c_int::from(balancer.balancer.has_nodes())) }
}

/// Starts a thread that makes passes and moves pages, unless it runs already or there is nothing to
/// balance. A pass is due when a thread of the program has *run* for its own period, and never
/// before it has run for 32 times the duration of its last pass.
///
/// Returns 0; -EAGAIN or another negative errno if no thread can be started; -EINVAL for NULL;
/// -EBADF if the balancer is destroyed.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_start(balancer: *mut Balancer) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe {
        with_memory(balancer, |balancer| match balancer.balancer.start() {
            Ok(()) => 0,
            Err(why) => error::of_system(&why),
        })
    }
}

/// Ends that thread and waits for it: for at most a batch or a pass. Armed pages stay armed.
///
/// Returns 0, also if there is no such thread; -EINVAL for NULL; -EBADF if the balancer is
/// destroyed.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_stop(balancer: *mut Balancer) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe {
        with_balancer(balancer, |balancer| {
            balancer.balancer.stop();
            0
        })
    }
}

/// Lets other processes request this balancer's report until it is destroyed: `percid numa report`
/// and `percid numa watch` do. They need the right to inspect this process (PTRACE_MODE_READ, which
/// commonly its user and root have).
///
/// The report is in a memfd, which takes one descriptor. A thread that sleeps until a process
/// requests a report makes it; with one node too. All reports together take at most a tenth of a
/// CPU. A second call changes nothing. In a child of fork() no report is made.
///
/// Returns 0; -EPERM if the balancer belongs to the parent of this process; -EINVAL for NULL;
/// -EBADF if it is destroyed; another negative errno if no descriptor, memory or thread is
/// available.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_publish(balancer: *mut Balancer) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe {
        with_memory(balancer, |balancer| match balancer.balancer.publish() {
            Ok(()) => 0,
            Err(_) if balancer.is_forked() => -libc::EPERM,
            Err(why) => error::of_system(&why),
        })
    }
}

/// Makes a pass on behalf of the calling thread: arms the regions that are due, and moves nothing.
/// For programs without the balancer's thread. Stores the result in `passed`, unless that is NULL.
///
/// Returns 0, -EINVAL if `balancer` is NULL, -EBADF if it is destroyed, -ENOMEM. Costs a reading of
/// /proc/self/maps and about 0.2 us for every page that is armed; with one node nothing.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety). `passed` is [memory](crate#safety) for a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_pass(
    balancer: *mut Balancer,
    passed: *mut Passed,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe {
        with_memory(balancer, |balancer| {
            let pass = balancer.balancer.pass();
            let took_ns = nanoseconds(pass.took);
            store(passed, Passed { armed: pass.armed, skipped: pass.skipped, took_ns })
        })
    }
}

/// Moves a batch of the pending pages of one region. Stores the result in `batch`, unless that is
/// NULL. Threads of the program that map memory or take a page fault during that time wait for at
/// most this batch.
///
/// Returns 0, -EINVAL if `balancer` is NULL, -EBADF if it is destroyed, -ENOMEM.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety). `batch` is [memory](crate#safety) for a structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_move_batch(
    balancer: *mut Balancer,
    batch: *mut Batch,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe {
        with_memory(balancer, |balancer| {
            let percid_numa::Batch { moved, failed, more, .. } = balancer.balancer.move_batch();
            store(batch, Batch { moved, failed, more: c_int::from(more) })
        })
    }
}

/// Stores a result in `place`, unless that is NULL.
///
/// # Safety
///
/// `place` is NULL or valid for writing.
unsafe fn store<T>(place: *mut T, value: T) -> c_int {
    if !place.is_null() {
        // SAFETY: the caller guarantees that `place` is NULL or valid, and it is not NULL.
        unsafe { place.write(value) };
    }
    0
}

/// Stops a balancer's thread and destroys the balancer. No other thread may use it during the call.
/// Its regions stay usable, are not balanced any more, and must be unregistered as before.
///
/// Returns 0, -EINVAL for NULL, -EBADF if it was destroyed before. Its handle is still detected.
///
/// # Safety
///
/// `balancer` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_destroy(balancer: *mut Balancer) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { BALANCERS.destroy(balancer) }
}
