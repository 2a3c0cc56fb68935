//! Children of `fork` in tests: all that a child changes is its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Starts a child that runs `body` and ends.
pub(crate) fn begin(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child has one thread, which exits at once. `body` is a test's: it does not use
    // what another thread of this process may have locked.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = catch_unwind(AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child.
        unsafe { libc::_exit(if right { 0 } else { 9 }) };
    }
    child
}

/// Waits for a child, whose body must not have panicked.
#[track_caller]
pub(crate) fn assert_ends_well(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child");
}

/// Runs `body` in a child; it must not panic.
#[track_caller]
pub(crate) fn run(body: impl FnOnce()) {
    assert_ends_well(begin(body));
}
