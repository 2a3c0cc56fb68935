//! Locks whose contents outlive a panic.

use std::sync::{Mutex, MutexGuard};

/// Locks data that stays valid if a thread panics while it holds the lock: numbers, and lists of
/// ranges.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
