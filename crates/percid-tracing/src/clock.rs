//! The time of a record: nanoseconds since the recorder was built, by the clock that never goes
//! backwards.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// When it was started, since 1970: 0 if the machine's clock stands before that.
    pub(crate) started_at: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { start: Instant::now(), started_at }
    }

    /// It has room for 584 years.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}
