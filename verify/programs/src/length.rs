//! The length of a run: it ends after enough events, and not before the requested time.

use std::time::{Duration, Instant};

use crate::options::Options;

/// The limit for everything that must happen some time: no machine is so slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Length {
    earliest: Instant,
    latest: Instant,
    events: u64,
}

impl Length {
    /// Begins a run of the given length. It takes this share of the seconds.
    pub(crate) fn begin(options: &Options, share: f64) -> Length {
        let earliest = Instant::now() + Duration::from_secs_f64(options.seconds * share);
        Length { earliest, latest: earliest + PATIENCE, events: options.events }
    }

    /// Returns `true` until `happened` events are enough and the time is over.
    pub(crate) fn goes_on(self, happened: u64) -> bool {
        let now = Instant::now();
        now < self.earliest || (happened < self.events && now < self.latest)
    }

    /// Waits for the end of the run.
    pub(crate) fn wait(self, happened: impl Fn() -> u64) {
        while self.goes_on(happened()) {
            std::thread::sleep(LOOK);
        }
    }
}

/// Waits until something is so, and returns `true`; `false` if it never is.
pub(crate) fn becomes(mut is_so: impl FnMut() -> bool) -> bool {
    let latest = Instant::now() + PATIENCE;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > latest {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}
