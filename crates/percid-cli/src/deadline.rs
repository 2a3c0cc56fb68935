//! The end of a measurement, also if it gets little CPU time.
//!
//! Measurements repeat until the requested time is over, and finish the round that has begun, so
//! that the shortest one has every value. If others use the CPUs, or this process has the lowest
//! priority, that round could take minutes. So no batch begins any more after a multiple of the
//! requested time plus a fixed time for each row. The result then reports the missing values. The
//! running batch still ends by itself, which takes as long as its threads wait for a CPU.

use std::time::{Duration, Instant};

use crate::busy;

/// Multiple of the requested time. The manuals mention it (`cli/manual.rs`).
const MULTIPLE: u32 = 3;
/// Additional time for each row, which is measured once however short the time is. On an idle CPU a
/// row takes at most a tenth of this.
const ROW: Duration = Duration::from_millis(500);

/// A source of elapsed time.
pub(crate) trait Clock {
    fn elapsed(&self) -> Duration;
}

impl Clock for Instant {
    fn elapsed(&self) -> Duration {
        Instant::elapsed(self)
    }
}

/// The deadline of one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline<C = Instant> {
    clock: C,
    asked: Duration,
    end: Duration,
}

impl Deadline {
    /// Creates a deadline that begins now. It is never overdue if a busy machine is to be ignored.
    pub(crate) fn new(asked: Duration, rows: usize) -> Deadline {
        let deadline = Deadline::with_clock(Instant::now(), asked, rows);
        let end = if busy::is_ignored() { Duration::MAX } else { deadline.end };
        Deadline { end, ..deadline }
    }
}

impl<C: Clock> Deadline<C> {
    pub(crate) fn with_clock(clock: C, asked: Duration, rows: usize) -> Deadline<C> {
        let rows = ROW.saturating_mul(u32::try_from(rows).unwrap_or(u32::MAX));
        Deadline { clock, asked, end: asked.saturating_mul(MULTIPLE).saturating_add(rows) }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Returns `true` if the requested time is over: no further round begins.
    pub(crate) fn is_reached(&self) -> bool {
        self.elapsed() >= self.asked
    }

    /// Returns `true` if a running round must stop.
    pub(crate) fn is_overdue(&self) -> bool {
        self.elapsed() >= self.end
    }

    /// Returns the share of the requested time that is over, and the remaining time.
    pub(crate) fn progress(&self) -> (f64, Duration) {
        let elapsed = self.elapsed();
        (elapsed.div_duration_f64(self.asked), self.asked.saturating_sub(elapsed))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock set by the test.
    #[derive(Debug, Default)]
    pub(crate) struct Moved(Cell<Duration>);

    impl Moved {
        pub(crate) fn set(&self, elapsed: Duration) {
            self.0.set(elapsed);
        }
    }

    impl Clock for &Moved {
        fn elapsed(&self) -> Duration {
            self.0.get()
        }
    }

    #[test]
    fn rounds_end_with_the_time_and_batches_with_its_multiple() {
        let clock = Moved::default();
        let deadline = Deadline::with_clock(&clock, Duration::from_secs(2), 8);
        let states = [0, 1999, 2000, 9999, 10_000, 60_000].map(|ms| {
            clock.set(Duration::from_millis(ms));
            (deadline.is_reached(), deadline.is_overdue())
        });
        let (early, reached, overdue) = ((false, false), (true, false), (true, true));
        assert_eq!(states, [early, early, reached, reached, overdue, overdue]);
    }

    #[test]
    fn no_time_still_leaves_a_while_for_each_row() {
        let clock = Moved::default();
        let deadline = Deadline::with_clock(&clock, Duration::ZERO, 2);
        assert!(deadline.is_reached() && !deadline.is_overdue());
        clock.set(Duration::from_secs(1));
        assert!(deadline.is_overdue());
    }

    #[test]
    fn times_without_an_end_never_come() {
        let clock = Moved::default();
        let deadline = Deadline::with_clock(&clock, Duration::MAX, usize::MAX);
        clock.set(Duration::from_secs(u64::MAX / 2));
        assert!(!deadline.is_reached() && !deadline.is_overdue());
    }

    #[test]
    fn progress_is_a_share_of_what_was_asked_for() {
        let clock = Moved::default();
        let deadline = Deadline::with_clock(&clock, Duration::from_secs(4), 1);
        clock.set(Duration::from_secs(1));
        assert_eq!(deadline.progress(), (0.25, Duration::from_secs(3)));
        clock.set(Duration::from_secs(9));
        assert_eq!(deadline.progress().1, Duration::ZERO);
    }
}
