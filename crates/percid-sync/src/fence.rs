//! The fence of all protocols, with hooks for tests.

pub(crate) use percid::fence::{is_asymmetric, light};

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    /// `true` if this thread's fences are refused.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
    /// `true` if this thread's fences are skipped, which breaks every protocol.
    static SKIPPED: Cell<bool> = const { Cell::new(false) };
    /// The number of fences that this thread ran.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The error of a fence that the kernel refuses, although it granted earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unfenced;

/// Runs the fence of all CPUs.
///
/// # Errors
///
/// It is refused.
pub(crate) fn all() -> Result<(), Unfenced> {
    #[cfg(test)]
    {
        if REFUSED.get() {
            return Err(Unfenced);
        }
        COUNT.set(COUNT.get() + 1);
        if SKIPPED.get() {
            return Ok(());
        }
    }
    percid::fence::all().map_err(|_| Unfenced)
}

/// Runs `body` with refused fences.
#[cfg(test)]
pub(crate) fn refused<R>(body: impl FnOnce() -> R) -> R {
    REFUSED.set(true);
    let result = body();
    REFUSED.set(false);
    result
}

/// Runs `body` without its fences: the control of stresses.
#[cfg(test)]
#[allow(dead_code, reason = "stresses are for 64-bit Linux")]
pub(crate) fn skipped<R>(body: impl FnOnce() -> R) -> R {
    SKIPPED.set(true);
    let result = body();
    SKIPPED.set(false);
    result
}

/// Returns the number of fences that `body` runs on this thread.
#[cfg(test)]
pub(crate) fn count(body: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    body();
    COUNT.get() - before
}
