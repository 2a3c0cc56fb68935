//! The calling thread's `errno`.

use std::fmt;

unsafe extern "C" {
    /// Returns the address of the calling thread's `errno`. Every C library has such a function,
    /// each under a different name.
    #[cfg_attr(
        any(target_os = "android", target_os = "netbsd", target_os = "openbsd"),
        link_name = "__errno"
    )]
    #[cfg_attr(any(target_vendor = "apple", target_os = "freebsd"), link_name = "__error")]
    #[cfg_attr(any(target_os = "illumos", target_os = "solaris"), link_name = "___errno")]
    #[cfg_attr(target_os = "aix", link_name = "_Errno")]
    #[cfg_attr(target_os = "haiku", link_name = "_errnop")]
    #[cfg_attr(target_os = "nto", link_name = "__get_errno_ptr")]
    safe fn __errno_location() -> *mut libc::c_int;
}

/// Returns the `errno` of the call that failed last on this thread.
#[cfg(any(test, all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
pub(crate) fn errno() -> i32 {
    // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
    unsafe { *__errno_location() }
}

/// Sets `errno`.
#[cfg(test)]
pub(crate) fn set_errno(value: i32) {
    // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
    unsafe { *__errno_location() = value };
}

/// Runs `body` and restores `errno`, so that a percid operation in a signal handler never changes
/// the value that the interrupted code reads next.
pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    let place = __errno_location();
    // SAFETY: the pointer is valid for this thread's whole life and no other thread writes through
    // it.
    let before = unsafe { *place };
    let result = body();
    // SAFETY: the pointer is valid for this thread's whole life, and no other thread writes through
    // it.
    unsafe { *place = before };
    result
}

/// An `errno`, displayed as its name in manual pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrnoName(pub(crate) i32);

impl fmt::Display for ErrnoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            libc::ENOSYS => {
                f.write_str("ENOSYS (the kernel has no such call, or a sandbox hides it)")
            }
            libc::EPERM => f.write_str("EPERM (a sandbox forbids the call)"),
            libc::EACCES => f.write_str("EACCES (a sandbox forbids the call)"),
            libc::EINVAL => f.write_str("EINVAL (the kernel does not know this use of the call)"),
            libc::ENOMEM => f.write_str("ENOMEM (out of memory)"),
            other => write!(f, "errno {other}"),
        }
    }
}
