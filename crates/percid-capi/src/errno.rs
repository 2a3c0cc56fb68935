//! Errors for C: negative `errno` values.

use std::ffi::c_int;

use percid::id::SourceError;
use percid::machine::Registration;

/// Returns the error of a source that cannot be used.
pub(crate) fn of_source_error(why: SourceError) -> c_int {
    match why {
        SourceError::NoRseq(Registration::Refused(errno))
        | SourceError::MembarrierRefused(errno)
        | SourceError::ProbeRefused(errno) => -errno,
        SourceError::SectionsNotProbed => -libc::EAGAIN,
        SourceError::NoKernelIds | SourceError::SharedArea => -libc::ENOTSUP,
        SourceError::NoMemory => -libc::ENOMEM,
        // `SourceError` may grow; the remaining variants mean that the machine lacks a feature.
        _ => -libc::ENOSYS,
    }
}

/// Runs `body` and restores `errno`.
pub(crate) fn preserved<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid, and no other thread writes through it.
    let before = unsafe { *place };
    let result = body();
    // SAFETY: the pointer is still valid: the same thread continues.
    unsafe { *place = before };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_is_put_back() {
        // SAFETY: the pointer is valid, and refers to the calling thread's own variable.
        let errno = || unsafe { &mut *libc::__errno_location() };
        *errno() = 4711;
        assert_eq!(preserved(|| std::mem::replace(errno(), 1)), 4711);
        assert_eq!(*errno(), 4711);
    }

    #[test]
    fn reasons_become_errors() {
        let refused = Registration::Refused(libc::EPERM);
        assert_eq!(of_source_error(SourceError::NoRseq(refused)), -libc::EPERM);
        assert_eq!(of_source_error(SourceError::NoRseq(Registration::Unsupported)), -libc::ENOSYS);
        assert_eq!(of_source_error(SourceError::NoKernelIds), -libc::ENOTSUP);
        assert_eq!(of_source_error(SourceError::NoMembarrier), -libc::ENOSYS);
        assert_eq!(of_source_error(SourceError::MembarrierRefused(libc::EPERM)), -libc::EPERM);
        assert_eq!(of_source_error(SourceError::ProbeRefused(libc::EPERM)), -libc::EPERM);
        assert_eq!(of_source_error(SourceError::SectionsNotProbed), -libc::EAGAIN);
        assert_eq!(of_source_error(SourceError::NoMemory), -libc::ENOMEM);
    }
}
