//! The time until another attempt.

use std::time::Duration;

/// The mean wait before the second attempt.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Waits that grow: 1, 2, 4, ... seconds, each multiplied by a random number from 0.5 to 1.5. So
/// programs that failed together do not retry together.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { next: FIRST_WAIT }
    }

    /// Returns the next wait, at least as long as the receiver has requested.
    pub(crate) fn wait(&mut self, asked_for: Option<Duration>) -> Duration {
        let wait = self.next.mul_f64(0.5 + fastrand::f64());
        self.next = (self.next * 2).min(MAX_WAIT);
        wait.max(asked_for.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit() {
        let mut backoff = Backoff::new();
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            let wait = backoff.wait(None).as_secs_f64() / f64::from(expected);
            assert!((0.5..=1.5).contains(&wait), "{wait} of {expected}");
        }
    }

    #[test]
    fn what_is_asked_for_is_waited_for() {
        let asked_for = Duration::from_secs(120);
        assert_eq!(Backoff::new().wait(Some(asked_for)), asked_for);
    }
}
