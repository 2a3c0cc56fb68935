//! The check that the library leaves `errno` alone.

/// Runs `body`. Returns its result, or `None` if it changed `errno`.
pub(crate) fn kept<T>(body: impl FnOnce() -> T) -> Option<T> {
    const PROGRAMS: i32 = 77;
    // SAFETY: the calling thread's own errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is that of the calling thread's own errno.
    unsafe { *errno = PROGRAMS };
    let result = body();
    // SAFETY: the pointer is that of the calling thread's own errno.
    (unsafe { *errno } == PROGRAMS).then_some(result)
}
