//! How far the intermittent benchmark is.

use std::time::{Duration, Instant};

use percid_command::progress::Progress;

/// How far the whole measurement is.
#[derive(Debug)]
pub(super) struct Meter {
    began: Instant,
    expected: Duration,
    progress: Progress,
}

impl Meter {
    pub(super) fn new(expected: Duration) -> Self {
        let progress = Progress::new("bench intermittent", expected);
        Meter { began: Instant::now(), expected, progress }
    }

    pub(super) fn tick(&self) {
        let elapsed = self.began.elapsed();
        self.progress
            .at(elapsed.div_duration_f64(self.expected), self.expected.saturating_sub(elapsed));
    }
}
