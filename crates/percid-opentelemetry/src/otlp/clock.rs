//! The clock of an exporter, which tests may replace.

use std::time::{Duration, Instant};

/// The clock of an exporter, for its intervals, its timeout and its pauses.
///
/// The timeout of a receiver's answer always follows the system's clock.
pub trait Clock: Send + Sync {
    /// Returns the time.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Reports that a pause of this length between two attempts begins.
    fn pauses(&self, _wait: Duration) {}
}

/// The system's clock.
pub(crate) struct System;

impl Clock for System {}
