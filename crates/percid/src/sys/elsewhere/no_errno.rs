//! A stub of `errno` for systems on which percid calls no C library. (On Windows operations may
//! change the last error; no signal handler that could interfere runs there.)

use std::fmt;

/// Runs `body`.
#[cfg(not(test))]
pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    body()
}

/// A system error, displayed as its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrnoName(pub(crate) i32);

impl fmt::Display for ErrnoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.0)
    }
}

#[cfg(test)]
pub(crate) use in_tests::{errno, preserving_errno, set_errno};

/// An `errno` for the tests of code that must preserve it on other systems.
#[cfg(test)]
mod in_tests {
    use std::cell::Cell;

    thread_local! {
        static ERRNO: Cell<i32> = const { Cell::new(0) };
    }

    pub(crate) fn errno() -> i32 {
        ERRNO.get()
    }

    pub(crate) fn set_errno(value: i32) {
        ERRNO.set(value);
    }

    pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
        let before = errno();
        let result = body();
        set_errno(before);
        result
    }
}
