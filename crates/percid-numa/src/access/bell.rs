//! What wakes balancers' threads: something is to be done before the next time they look.
//!
//! One for the process: whoever rings it does not know which balancer's memory it uses, and threads
//! that find nothing to do sleep again.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::sys::futex;

/// How often it was rung.
static BELL: AtomicU32 = AtomicU32::new(0);

/// Where the handler of faults writes.
pub(crate) fn place() -> usize {
    (&raw const BELL).addr()
}

/// Wakes all who sleep. Async-signal-safe; one system call.
pub(crate) fn ring() {
    BELL.fetch_add(1, SeqCst);
    futex::wake(&BELL);
}

/// A moment after which a ring is not missed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(u32);

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment(BELL.load(SeqCst))
    }

    /// Sleeps for this time, or until it has rung since the moment. Returns whether it has.
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
        // Other tests may ring it.
        let end = Instant::now() + Duration::from_secs(600);
        while Moment::now().sleep(Duration::from_millis(2)) {
            assert!(Instant::now() < end);
        }
    }
}
