//! CPU time of this program.

use std::time::{Duration, Instant};

/// Counts from one screen to the next.
#[derive(Debug)]
pub(super) struct OwnCost {
    before: Option<Duration>,
    at: Instant,
}

impl OwnCost {
    /// Begins to count.
    pub(super) fn new() -> OwnCost {
        OwnCost { before: cpu_time(), at: Instant::now() }
    }

    /// Returns the CPU time of this program since the last call, in nanoseconds, and the time that
    /// has passed since then.
    pub(super) fn since_last(&mut self) -> (Option<u64>, u64) {
        let (now, at) = (cpu_time(), Instant::now());
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let taken = now.zip(self.before).map(|(now, before)| ns(now.saturating_sub(before)));
        let span = ns(at.duration_since(self.at));
        *self = OwnCost { before: now, at };
        (taken, span)
    }
}

#[cfg(unix)]
fn cpu_time() -> Option<Duration> {
    // SAFETY: a `rusage` of zeros is valid, and the call writes into the one that it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &mut usage) == 0).then_some(usage)?
    };
    let time = |part: libc::timeval| {
        Duration::from_secs(part.tv_sec as u64) + Duration::from_micros(part.tv_usec as u64)
    };
    Some(time(usage.ru_utime) + time(usage.ru_stime))
}

#[cfg(not(unix))]
fn cpu_time() -> Option<Duration> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn work_costs_and_sleep_does_not() {
        let mut cost = OwnCost::new();
        let began = Instant::now();
        while cpu_time() == cost.before || began.elapsed() < Duration::from_millis(30) {}
        let (worked, span) = cost.since_last();
        assert!(worked.is_some_and(|ns| ns > 0) && span >= 30_000_000, "{worked:?} {span}");
    }
}
