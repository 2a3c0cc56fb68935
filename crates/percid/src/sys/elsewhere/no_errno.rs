//! Where percid calls no C library, so there is no `errno` to be put back. (On Windows operations may
//! change the last error; no signal handler runs there that could come in between.)

use std::fmt;

/// There is none to be put back.
pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    body()
}

/// An error of the system by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrnoName(pub(crate) i32);

impl fmt::Display for ErrnoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.0)
    }
}

#[cfg(test)]
thread_local! {
    static ERRNO: std::cell::Cell<i32> = const { std::cell::Cell::new(0) };
}

/// What [`set_errno`] was told: nobody changes it.
#[cfg(test)]
pub(crate) fn errno() -> i32 {
    ERRNO.get()
}

/// For [`errno`].
#[cfg(test)]
pub(crate) fn set_errno(value: i32) {
    ERRNO.set(value);
}
