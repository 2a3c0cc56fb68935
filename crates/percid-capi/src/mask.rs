//! The active mask.

use std::ffi::{c_int, c_void};

use crate::barrier::guard;
use crate::callback::count;
use crate::ends::{is_visiting, visiting};
use crate::registry::{Object, Registry, is_static};

/// Maximum number of CPUs that any Linux kernel supports.
const MAX_IDS: u32 = 8192;

/// The set of IDs that have data to flush: a cache that is not empty, a pending batch, a pinned
/// epoch.
///
/// Made by percid_mask_create(), or of static storage: `static percid_mask active =
/// PERCID_MASK_INIT;`.
///
/// Order: store the data that the mark announces before percid_mask_mark(). Then a drain that
/// begins after that call has returned visits the ID and finds the data, unless another drain has
/// taken the mark, which then finds it. Data that is published while a drain runs is marked for the
/// next one. Stale marks are possible and cost an unnecessary visit. No ID is visited that is
/// larger than all that were ever marked. If the memory for IDs from 512 on is refused, every drain
/// visits all of them up to the largest marked one, and they are members for
/// percid_mask_is_marked().
/// Threads: any number of threads may use it at once.
/// Signals: marking is async-signal-safe and leaves errno alone; draining is if its callback is.
/// Fork: the child's mask is the parent's, except for members that another thread of the parent had
/// removed and not visited yet.
/// Memory: 192 bytes; 1 KiB more once an ID of 512 or more is marked.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Mask {
    /// Private to the library: a bit for each of the first 512 IDs.
    marked: [u64; 8],
    /// Private to the library.
    rest: [u64; 16],
}

const _: () = {
    assert!(size_of::<Mask>() == size_of::<percid::ActiveMask>());
    assert!(align_of::<Mask>() == align_of::<percid::ActiveMask>());
};

static MASKS: Registry<Mask> = Registry::new();

impl Object for Mask {
    type Inner = percid::ActiveMask;
    const TYPE: u64 = 37;

    unsafe fn of_static<'a>(address: *const Mask) -> Result<&'a percid::ActiveMask, c_int> {
        // SAFETY: size and alignment are those of the library's type, which is all zero at first
        // and changes only atomically.
        Ok(unsafe { &*address.cast() })
    }
}

/// Stores a new mask without members in `mask`. Returns 0, -EINVAL for NULL, or -ENOMEM; on error
/// `mask` becomes NULL.
///
/// # Safety
///
/// `mask` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_mask_create(mask: *mut *mut Mask) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { MASKS.create(mask, || Ok(percid::ActiveMask::new())) }
}

/// Makes `id` a member, after data was published that a drain must find.
///
/// Returns 0, -ERANGE for an ID of 8192 or more, which no CPU can have, -EINVAL for NULL, -EBADF if
/// the mask is destroyed. Costs a call, a load and a test if the bit is set, otherwise one locked
/// instruction. The first call that sets a bit registers the process for the kernel's fence: 2 us
/// early in main(), 20 ms later.
///
/// # Safety
///
/// `mask` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_mask_mark(mask: *mut Mask, id: u32) -> c_int {
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(mask) } {
        Ok(_) if id >= MAX_IDS => -libc::ERANGE,
        Ok(mask) => guard(-libc::EFAULT, || {
            mask.mark(id);
            0
        }),
        Err(error) => error,
    }
}

/// Returns 1 if `id` is currently a member, 0 if it is not, or an error of percid_mask_mark().
///
/// # Safety
///
/// `mask` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_mask_is_marked(mask: *const Mask, id: u32) -> c_int {
    // SAFETY: the caller guarantees a handle.
    match unsafe { Registry::object(mask) } {
        Ok(_) if id >= MAX_IDS => -libc::ERANGE,
        Ok(mask) => guard(-libc::EFAULT, || c_int::from(mask.is_marked(id))),
        Err(error) => error,
    }
}

/// Removes all members and calls `visit` for each; data that was published before they were marked
/// is visible to it. Returns the number of members; -EINVAL for NULL; -EBADF if the mask is
/// destroyed.
///
/// `visit` may mark and drain: an inner drain finds the members that the outer one has not taken.
/// If it does not return, the members that were not passed to it stay members.
///
/// Costs one fence of all CPUs, about 10 us, if there is any member; otherwise 9 loads.
///
/// # Safety
///
/// `mask` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_mask_drain(
    mask: *mut Mask,
    visit: Option<unsafe extern "C-unwind" fn(id: u32, argument: *mut c_void)>,
    argument: *mut c_void,
) -> i64 {
    // SAFETY: the caller guarantees a handle.
    match (unsafe { Registry::object(mask) }, visit) {
        (Ok(mask), Some(visit)) => visiting(mask, mask.drain_iter(), |members| {
            let mut drained = 0;
            while let Some(id) = guard(None, || members.next()) {
                drained += 1;
                // SAFETY: the caller guarantees a function for these arguments.
                unsafe { visit(id, argument) };
            }
            count(drained)
        }),
        (Ok(_), None) => i64::from(-libc::EINVAL),
        (Err(error), _) => i64::from(error),
    }
}

/// Destroys a mask. No other thread may use it during the call.
///
/// Returns 0; -EINVAL for NULL, and for a mask of static storage, which is unchanged; -EDEADLK if
/// the `visit` of a drain calls it; -EBADF if it was destroyed before. Its handle is still
/// detected.
///
/// # Safety
///
/// `mask` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_mask_destroy(mask: *mut Mask) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    match unsafe { Registry::object(mask) } {
        Ok(visited) if is_visiting(visited) && !is_static(mask) => -libc::EDEADLK,
        // SAFETY: the caller guarantees a handle that no other thread uses.
        _ => unsafe { MASKS.destroy(mask) },
    }
}
