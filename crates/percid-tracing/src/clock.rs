//! The time of a record: nanoseconds since the recorder was built, by the monotonic clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// Time from 1970 to the start; 0 if the system's clock is before 1970.
    pub(crate) started_at: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { start: Instant::now(), started_at }
    }

    /// Returns the nanoseconds since the start. 64 bits suffice for 584 years.
    pub(crate) fn now(&self) -> u64 {
        // #[gamma::skip(expr, reason = "a nanosecond more or less")]
        self.start.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_between_those_before_and_behind() {
        let (instant, system) = (Instant::now(), SystemTime::now());
        let mut clock = Clock::start();
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).expect("a time after 1970");
        assert!((since(system)..=since(SystemTime::now())).contains(&clock.started_at));
        let earlier = Duration::from_millis(1500);
        clock.start -= earlier;
        let now = u128::from(clock.now());
        assert!((earlier.as_nanos()..=(instant.elapsed() + earlier).as_nanos()).contains(&now));
    }
}
