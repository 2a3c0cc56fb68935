//! Measurements of one thread with one index.

use std::time::Duration;

/// One thread's bursts with one index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// The distinct indices of warm-up and timed bursts: few, usually one.
    pub(crate) indices: Vec<u32>,
    /// Minor faults of the very first burst.
    pub(crate) faults_first: Option<i64>,
    /// Minor faults of all timed bursts.
    pub(crate) faults_timed: i64,
    /// The timed burst right after the warm-up.
    pub(crate) hot: Option<Duration>,
    /// The timed bursts after a pause.
    pub(crate) later: Vec<Duration>,
    /// Bursts that were not timed, because the thread was preempted during them.
    pub(crate) preempted: usize,
}

impl Tally {
    pub(crate) fn saw(&mut self, index: u32) {
        if !self.indices.contains(&index) {
            self.indices.push(index);
        }
    }

    /// Records a burst: the one in the thread's first turn is hot, all others come after a pause.
    pub(crate) fn time(&mut self, is_first: bool, took: Duration, faults: i64) {
        self.faults_timed += faults;
        if is_first { self.hot = Some(took) } else { self.later.push(took) }
    }

    pub(crate) fn timed(&self) -> impl Iterator<Item = Duration> {
        self.hot.into_iter().chain(self.later.iter().copied())
    }
}
