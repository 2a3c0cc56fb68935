//! Notifications that wake the threads of balancers before their next periodic check.
//!
//! One counter for the process: the thread that notifies does not know which balancer's memory it
//! uses. Balancer threads that find no work sleep again.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::sys::futex;

/// Number of notifications.
static NOTIFIED: AtomicU32 = AtomicU32::new(0);

/// Returns the address of the counter, which the fault handler writes.
pub(crate) fn place() -> usize {
    (&raw const NOTIFIED).addr()
}

/// Wakes all threads that wait for a notification. Async-signal-safe; one system call.
pub(crate) fn notify() {
    NOTIFIED.fetch_add(1, SeqCst);
    futex::wake(&NOTIFIED);
}

/// A value of the counter: a notification after it is not missed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WakeupCount(u32);

impl WakeupCount {
    pub(crate) fn now() -> WakeupCount {
        WakeupCount(NOTIFIED.load(SeqCst))
    }

    /// Sleeps for `time`, or until there was a notification since this moment. Returns `true` if
    /// there was one.
    pub(crate) fn sleep(self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while NOTIFIED.load(SeqCst) == self.0 {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return false;
            }
            futex::wait(&NOTIFIED, self.0, Some(rest));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_not_missed_and_without_one_the_time_passes() {
        let moment = WakeupCount::now();
        notify();
        assert!(moment.sleep(Duration::from_secs(60)), "a missed notification would be none");
        // Other tests may notify.
        let end = Instant::now() + Duration::from_secs(600);
        while WakeupCount::now().sleep(Duration::from_millis(2)) {
            assert!(Instant::now() < end);
        }
    }
}
