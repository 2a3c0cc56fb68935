//! The bell: wakes the threads of balancers before their next periodic check.
//!
//! One bell for the process: the thread that rings it does not know which balancer's memory it
//! uses. Balancer threads that find no work sleep again.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::sys::futex;

/// Number of times that the bell was rung.
static BELL: AtomicU32 = AtomicU32::new(0);

/// Returns the address of the counter, which the fault handler writes.
pub(crate) fn place() -> usize {
    (&raw const BELL).addr()
}

/// Wakes all threads that sleep on the bell. Async-signal-safe; one system call.
pub(crate) fn ring() {
    BELL.fetch_add(1, SeqCst);
    futex::wake(&BELL);
}

/// A value of the counter: a ring after it is not missed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(u32);

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment(BELL.load(SeqCst))
    }

    /// Sleeps for `time`, or until the bell was rung since this moment. Returns `true` if it was
    /// rung.
    pub(crate) fn sleep(self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while BELL.load(SeqCst) == self.0 {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return false;
            }
            futex::wait(&BELL, self.0, Some(rest));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_not_missed_and_without_one_the_time_passes() {
        let moment = Moment::now();
        ring();
        assert!(moment.sleep(Duration::from_secs(60)), "a ring that is missed would be none");
        // Other tests may ring the bell.
        let end = Instant::now() + Duration::from_secs(600);
        while Moment::now().sleep(Duration::from_millis(2)) {
            assert!(Instant::now() < end);
        }
    }
}
