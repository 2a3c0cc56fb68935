//! Regions: registering and unregistering memory, and reporting accesses to it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use percid_numa::Exclusion;

use super::balancer::Balancer;
use super::error;
use super::maker::Maker;
use crate::barrier::{guard, uncancelled};
use crate::errno::preserved;
use crate::headroom;
use crate::registry::{Object, Registry};

/// The method by which a balancer detects the threads that use a region. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The program reports accesses, by percid_region_touch().
    Reported = 1,
    /// Page faults: armed pages have no access rights.
    Trapped = 2,
    /// Write protection: a thread that writes to an armed page waits until the access is recorded;
    /// reads are not detected.
    Written = 3,
}

impl Access {
    pub(super) fn from_method(access: percid_numa::AccessMethod) -> Access {
        match access {
            percid_numa::AccessMethod::Reported => Access::Reported,
            percid_numa::AccessMethod::Trapped => Access::Trapped,
            percid_numa::AccessMethod::Written => Access::Written,
        }
    }
}

/// Memory that a balancer manages, from percid_region_register() to percid_region_unregister().
///
/// Threads: any number of threads may use it at once.
/// Signals: percid_region_touch() and percid_region_touch_all() are async-signal-safe and leave errno
/// alone; the rest is not.
/// Fork: in the child no page is armed anew. One that was armed is disarmed when it is touched.
/// Memory: 6.6 bytes per page, or per 64 KiB of trapped memory, and 4 KiB; none with one node.
#[derive(Debug)]
pub struct Region {
    region: Arc<percid_numa::Region>,
    /// The excluded parts; each refers to `region`. Not accessed in a child of fork(): a thread of
    /// the parent may have been changing it.
    excluded: ManuallyDrop<Mutex<Vec<Excluded>>>,
    maker: Maker,
}

#[derive(Debug)]
struct Excluded {
    part: Range<usize>,
    _exclusion: Exclusion<'static>,
}

static REGIONS: Registry<Region> = Registry::new();

impl Object for Region {
    type Inner = Region;
    const TYPE: u64 = 39;
}

impl Region {
    fn new(region: percid_numa::Region) -> Region {
        let excluded = ManuallyDrop::new(Mutex::default());
        Region { region: Arc::new(region), excluded, maker: Maker::here() }
    }

    fn is_forked(&self) -> bool {
        self.maker.is_elsewhere()
    }

    fn excluded(&self) -> MutexGuard<'_, Vec<Excluded>> {
        // A thread that panicked has either completed its change of the list or not begun it.
        self.excluded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclude(&self, part: Range<usize>) {
        // SAFETY: the region is in the `Arc`, which is dropped after the contents of `excluded`.
        // (In a child of fork() that is never dropped, nor used.)
        let region: &'static percid_numa::Region = unsafe { &*Arc::as_ptr(&self.region) };
        let exclusion = region.exclude(part.clone());
        self.excluded().push(Excluded { part, _exclusion: exclusion });
    }

    /// Ends the exclusion of a part. Returns `true` if it was excluded.
    fn include(&self, part: Range<usize>) -> bool {
        let mut excluded = self.excluded();
        let place = excluded.iter().position(|other| other.part == part);
        let ended = place.map(|place| excluded.swap_remove(place));
        drop(excluded);
        ended.is_some()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !self.is_forked() {
            // SAFETY: the list is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.excluded) };
        }
    }
}

/// Registers `bytes` bytes of memory from `start` on, for which the program reports accesses by
/// percid_region_touch(), and stores the region in `region`.
///
/// The range begins and ends at multiples of the page size, and consists of mappings of the same
/// kind and access rights. The memory may be unmapped while it is registered: the balancer detects
/// that, and ignores the region from then on.
///
/// Returns 0, or one of these errors, and then `region` becomes NULL; percid_region_error() has a
/// text for each:
///
///     -EINVAL   `region` or `balancer` is NULL, the range is empty, or is not made of whole pages
///     -EBADF    the balancer is destroyed
///     -EEXIST   a part is registered already, with this balancer
///     -ENXIO    nothing is mapped in a part
///     -ENOTSUP  the kernel never moves what is mapped there: its own pages, or those of hugetlbfs
///     -EXDEV    the mappings have different rights, or are of memory and files: register each
///     -ENOMEM   no memory to keep track of the pages
///     -ENOSYS   /proc/self/maps cannot be read
///     -EPERM    the balancer belongs to the parent of this process
///
/// Costs a reading of /proc/self/maps.
///
/// # Safety
///
/// `region` is [memory](crate#safety) for a handle, `balancer` [a handle](crate#safety). Nothing is
/// asked of the range.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_register(
    region: *mut *mut Region,
    balancer: *mut Balancer,
    start: *const c_void,
    bytes: usize,
) -> c_int {
    let register = |balancer: &percid_numa::Balancer| balancer.register(start.cast(), bytes);
    // SAFETY: the caller guarantees a pointer that is NULL or valid, and a handle.
    unsafe { add(region, balancer, register) }
}

/// Registers memory to which accesses are detected by faults, so that the program need not report
/// them. Armed memory has no access rights. A handler of SIGSEGV, which the first call installs,
/// records the faulting thread and restores the rights. A fault that is not at armed memory is
/// passed to the previous handler: a crash stays a crash.
///
/// The program guarantees that, until the region is unregistered,
///
///   - the memory stays mapped, with the access rights that it has now, and nothing changes them;
///   - no thread runs, now or later, on a stack in it that the registration has not refused;
///   - no thread blocks SIGSEGV while it uses the memory, or installs another handler of SIGSEGV
///     that does not call the previous one;
///   - no pointer into it is passed to a system call unless the part is excluded: the call would
///     fail with EFAULT, or complete only a part of its work;
///   - no child of vfork() and no other process that shares the address space uses it.
///
/// Returns 0, an error of percid_region_register(), or
///
///     -EDEADLK  a fault in the range could not be handled, or is percid's own: see below
///     -EFAULT   the memory has no access rights, or is executable: rights might not be restored
///     -EDQUOT   RLIMIT_DATA is set: rights might not be restored
///     -ENOSPC   there are 256 trapped regions already
///     -EBUSY    another handler of SIGSEGV was installed after percid's
///
/// -EDEADLK is returned for memory that contains any part of
///
///   - the stack of any thread, used or not yet used, with the adjacent data: thread-local
///     variables, the rseq area, all data that the C library stores for the thread; and the memory
///     below a stack that has no guard;
///   - the calling thread's alternate signal stack;
///   - the memory that the handler itself uses: percid's variables, the constants of the program or
///     library that percid is linked into, and the C library;
///   - percid's structures: their memory for each ID, and the objects of pools, which
///     percid_region_register() accepts.
///
/// Not detected are, of other threads, the alternate signal stacks and the thread-local variables
/// of libraries that were loaded by dlopen(); and stacks that the program has allocated by itself,
/// as for coroutines, unless a thread that waits in a system call is on one. Threads that start
/// later get other memory, except those whose stack the program provides.
///
/// Costs a reading of /proc, and a thread that ends at once: about 100 us, and more for every
/// thread. The first access to 64 KiB of armed memory costs 4 us.
///
/// # Safety
///
/// `region` is [memory](crate#safety) for a handle, `balancer` [a handle](crate#safety). The
/// program keeps the promises above.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_register_trapped(
    region: *mut *mut Region,
    balancer: *mut Balancer,
    start: *const c_void,
    bytes: usize,
) -> c_int {
    let register = |balancer: &percid_numa::Balancer| {
        // SAFETY: the caller guarantees the contract of `register_trapped`.
        unsafe { balancer.register_trapped(start.cast(), bytes) }
    };
    // SAFETY: the caller guarantees a pointer that is NULL or valid, and a handle.
    unsafe { add(region, balancer, register) }
}

/// Registers memory to which writes are detected, by userfaultfd: the first write to 64 KiB of
/// armed memory waits until the thread is recorded, about 12 us. Reads are not detected. System
/// calls wait in the same way, so nothing has to be excluded. The first such region of a balancer
/// starts a thread and opens two descriptors.
///
/// No stack, thread-local memory or robust mutex may be in the range: data that the kernel writes
/// there when a thread ends would be lost. Checkpoints of the process fail, other users of
/// userfaultfd cannot have the same memory, and a debugger that writes to an armed page waits
/// forever.
///
/// Returns 0, an error of percid_region_register(), or
///
///     -EDEADLK          the range contains a part of a thread's stack, or other memory that
///                       percid_region_register_trapped() refuses with this error, except memory
///                       that only a handler uses
///     -ENODEV           the memory is a file's, shared with other processes, or may not be written
///     -EACCES           the process may not use userfaultfd for system calls: that needs
///                       CAP_SYS_PTRACE, vm.unprivileged_userfaultfd = 1, or the right to open
///                       /dev/userfaultfd
///     -EPROTONOSUPPORT  the kernel has no userfaultfd with write protection (Linux 5.7; 6.10 on
///                       64-bit Arm)
///     -EALREADY         another user of userfaultfd monitors the memory
///     -EUSERS           the balancer has 256 such regions already
///     -EIO              the kernel refused for another reason
///
/// # Safety
///
/// `region` is [memory](crate#safety) for a handle, `balancer` [a handle](crate#safety). Nothing is
/// asked of the range.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_register_written(
    region: *mut *mut Region,
    balancer: *mut Balancer,
    start: *const c_void,
    bytes: usize,
) -> c_int {
    let register =
        |balancer: &percid_numa::Balancer| balancer.register_written(start.cast(), bytes);
    // SAFETY: the caller guarantees a pointer that is NULL or valid, and a handle.
    unsafe { add(region, balancer, register) }
}

/// # Safety
///
/// The pointer and the handle are NULL or valid.
unsafe fn add(
    region: *mut *mut Region,
    balancer: *mut Balancer,
    register: impl FnOnce(
        &percid_numa::Balancer,
    ) -> Result<percid_numa::Region, percid_numa::RegisterError>,
) -> c_int {
    let make = || {
        // SAFETY: the caller guarantees a handle.
        let balancer = unsafe { Registry::object(balancer) }?;
        register(&balancer.balancer).map(Region::new).map_err(error::of_register)
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { REGIONS.create(region, make) }
}

/// Returns a short text for an error of percid_region_register(), percid_region_register_trapped()
/// or percid_region_register_written(); NULL if the number is none of them.
///
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_region_error(error: c_int) -> *const c_char {
    text(error).map_or(std::ptr::null(), CStr::as_ptr)
}

fn text(error: c_int) -> Option<&'static CStr> {
    Some(match error.checked_neg()? {
        libc::EINVAL => c"a pointer is NULL, or the range is empty or not made of whole pages",
        libc::EBADF => c"the balancer is destroyed",
        libc::EEXIST => c"part of the range is registered already",
        libc::ENXIO => c"nothing is mapped in part of the range",
        libc::ENOTSUP => c"the kernel does not move the pages of part of the range",
        libc::EXDEV => c"the range has mappings of different kinds: register each",
        libc::EFAULT => c"trapped memory must have access rights and not be executable",
        libc::EDQUOT => c"RLIMIT_DATA must be unlimited for trapped memory",
        libc::EDEADLK => c"the range holds a thread's stack or thread-local storage, or what percid's handler or structures use",
        libc::ENOSPC => c"there are 256 trapped regions already",
        libc::EBUSY => c"another SIGSEGV handler was installed after percid's",
        libc::ENOMEM => c"no memory to keep track of the pages",
        libc::ENOSYS => c"/proc/self/maps cannot be read",
        libc::EPERM => c"the balancer belongs to the parent process",
        libc::ENODEV => {
            c"writes are seen to memory of the process's own only, not to files or shared memory"
        }
        libc::EACCES => c"the process may not use userfaultfd for faults in system calls",
        libc::EPROTONOSUPPORT => c"the kernel has no userfaultfd with write protection",
        libc::EALREADY => c"another user of userfaultfd watches part of the range",
        libc::EUSERS => c"there are 256 regions already whose writes are seen",
        libc::EIO => c"what it takes to see writes was refused",
        _ => return None,
    })
}

/// Reports that the calling thread uses the memory `offset` bytes from the region's start. Call it
/// about as often as the program proceeds from one page to another. More frequent calls have no
/// effect, because an armed page counts once. Offsets beyond the region, trapped regions and
/// unregistered regions are ignored.
///
/// Async-signal-safe; never waits. Costs a call, four loads and two tests unless the page is armed;
/// then two or three system calls.
///
/// # Safety
///
/// `region` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_touch(region: *mut Region, offset: usize) {
    // SAFETY: the caller guarantees a handle.
    if let Ok(region) = unsafe { Registry::object(region) } {
        guard((), || region.region.touch(offset));
    }
}

/// Reports that the calling thread uses all of the region. Trapped regions and unregistered regions
/// are ignored.
///
/// Async-signal-safe; never waits. Costs a load for every 64 pages, and for every armed one the
/// cost of percid_region_touch().
///
/// # Safety
///
/// `region` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_touch_all(region: *mut Region) {
    // SAFETY: the caller guarantees a handle.
    if let Ok(region) = unsafe { Registry::object(region) } {
        guard((), || region.region.touch_all());
    }
}

/// Returns the start of a region; NULL if there is no such region.
///
/// # Safety
///
/// `region` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_start(region: *const Region) -> *mut c_void {
    // SAFETY: the caller guarantees a handle.
    let start = unsafe { Registry::object(region) }.map_or(0, |region| region.region.range().start);
    std::ptr::with_exposed_provenance_mut(start)
}

/// Returns the size of a region in bytes; 0 if there is no such region.
///
/// # Safety
///
/// `region` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_bytes(region: *const Region) -> usize {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(region) }.map_or(0, |region| region.region.range().len())
}

/// Returns the access method of a region: one of enum percid_access. -EINVAL for NULL, -EBADF if it
/// is unregistered.
///
/// # Safety
///
/// `region` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_access(region: *const Region) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe { with_region(region, |region| Access::from_method(region.region.access()) as c_int) }
}

/// Keeps a part of a trapped region, `bytes` bytes from `offset` on, accessible until
/// percid_region_exclude_end(): for buffers that are passed to system calls, which fail with EFAULT
/// at armed memory. Whole granules of 64 KiB around the part are disarmed, and not armed again
/// until then. A part may be excluded several times.
///
/// Returns 0; -ERANGE if the part is not in the region; -EINVAL for NULL; -EBADF if the region is
/// unregistered; -ENOMEM. Waits for the piece that is currently being armed, or the batch that is
/// being moved.
///
/// # Safety
///
/// `region` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_exclude_begin(
    region: *mut Region,
    offset: usize,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe {
        with_region(region, |region| match part(region, offset, bytes) {
            Some(_) if region.is_forked() => 0,
            Some(part) => match headroom::ask() {
                Ok(()) => {
                    region.exclude(part);
                    0
                }
                Err(error) => error,
            },
            None => -libc::ERANGE,
        })
    }
}

/// Ends an exclusion by percid_region_exclude_begin() with the same arguments, so that the part may
/// be armed again.
///
/// Returns 0; -ENOENT if it is not excluded; -ERANGE, -EINVAL and -EBADF like
/// percid_region_exclude_begin().
///
/// # Safety
///
/// `region` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_exclude_end(
    region: *mut Region,
    offset: usize,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    unsafe {
        with_region(region, |region| match part(region, offset, bytes) {
            Some(_) if region.is_forked() => 0,
            Some(part) if region.include(part.clone()) => 0,
            Some(_) => -libc::ENOENT,
            None => -libc::ERANGE,
        })
    }
}

/// Returns the range of a part of a region, in bytes from its start; `None` if it is not in the
/// region.
fn part(region: &Region, offset: usize, bytes: usize) -> Option<Range<usize>> {
    let end = offset.checked_add(bytes)?;
    (end <= region.region.range().len()).then_some(offset..end)
}

/// Returns the result of `body` for the region of a handle, or the error of the handle.
///
/// # Safety
///
/// The contract of [`Registry::object`] holds.
unsafe fn with_region(handle: *const Region, body: impl FnOnce(&Region) -> c_int) -> c_int {
    // SAFETY: the caller guarantees a handle, whose object is not destroyed during the call.
    match unsafe { Registry::object(handle) } {
        Ok(region) => preserved(|| uncancelled(-libc::EFAULT, || body(region))),
        Err(error) => error,
    }
}

/// Unregisters memory, which is disarmed and can be used for anything then. Exclusions need not be
/// ended before. No other thread may use the region during the call. Waits for a running pass or
/// batch.
///
/// Returns 0, -EINVAL for NULL, -EBADF if it was unregistered before, or -ENOMEM, and it stays
/// registered. Its handle is still detected.
///
/// # Safety
///
/// `region` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_region_unregister(region: *mut Region) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { REGIONS.destroy_with_memory(region) }
}

#[cfg(test)]
mod tests {
    use percid_numa::RegisterError;

    use super::*;

    #[test]
    fn every_refusal_has_a_text() {
        for why in [
            RegisterError::NotAligned { page: 4096 },
            RegisterError::Overlaps { region: 1 },
            RegisterError::NotMapped { address: 1 },
            RegisterError::NotMovable { address: 1 },
            RegisterError::Mixed { address: 1 },
            RegisterError::NoRights { address: 1 },
            RegisterError::Executable { address: 1 },
            RegisterError::DataLimited,
            RegisterError::HandlerData { address: 1 },
            RegisterError::PercidMemory { address: 1 },
            RegisterError::ThreadMemory { address: 1 },
            RegisterError::TooManyTrapped,
            RegisterError::HandlerReplaced,
            RegisterError::NoMemory,
            RegisterError::NoProc,
            RegisterError::Forked,
            RegisterError::NotPrivate { address: 1 },
            RegisterError::NotPermitted,
            RegisterError::NotSupported,
            RegisterError::OtherMonitor,
            RegisterError::TooManyWritten,
            RegisterError::Refused { errno: 1 },
        ] {
            assert!(text(error::of_register(why)).is_some(), "{why}");
        }
        assert!(
            [0, 1, libc::EINVAL, -libc::EPIPE, c_int::MIN].map(text).iter().all(Option::is_none)
        );
    }
}
