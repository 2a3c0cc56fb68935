//! Locks whose contents outlive a panic.

use std::sync::{Mutex, MutexGuard};

/// Locks what stays usable if a thread panics while it holds it: numbers, and lists of ranges.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
