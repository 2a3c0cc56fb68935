//! Tests that concern every file of their process. They run one at a time, and no other test runs
//! in the process.

mod blind;
mod publication;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test of this program runs.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
