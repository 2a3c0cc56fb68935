//! What Windows has for an `errno`: the calling thread's last error.

use std::fmt;

#[link(name = "kernel32")]
unsafe extern "system" {
    safe fn GetLastError() -> u32;
    safe fn SetLastError(error: u32);
}

/// The error of the call that failed last on this thread.
#[cfg(test)]
pub(crate) fn errno() -> i32 {
    GetLastError() as i32
}

/// Makes it another.
#[cfg(test)]
pub(crate) fn set_errno(value: i32) {
    SetLastError(value as u32);
}

/// Runs `body` and puts the last error back as it was.
pub(crate) fn preserving_errno<T>(body: impl FnOnce() -> T) -> T {
    let before = GetLastError();
    let result = body();
    SetLastError(before);
    result
}

/// An error of the system by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrnoName(pub(crate) i32);

impl fmt::Display for ErrnoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.0)
    }
}
