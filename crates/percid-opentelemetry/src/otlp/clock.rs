//! The time by which an exporter waits, which tests may set.

use std::time::{Duration, Instant};

/// The time of an exporter: when its intervals, its timeout and its pauses are over.
///
/// The timeout of a receiver's answer follows the system's clock all the same.
pub trait Clock: Send + Sync {
    /// Returns the time.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Is called when a pause of this length between two attempts begins.
    fn pauses(&self, _wait: Duration) {}
}

/// The system's clock.
pub(crate) struct System;

impl Clock for System {}
