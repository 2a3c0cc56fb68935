//! How long to wait before another attempt.

use std::time::Duration;

/// Before the second attempt.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that become longer, by chance from half to one and a half of 1, 2, 4, ... seconds: programs that
/// failed together do not come back together.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { next: FIRST }
    }

    /// The next wait, no shorter than what the receiver has asked for.
    pub(crate) fn wait(&mut self, asked_for: Option<Duration>) -> Duration {
        let wait = self.next.mul_f64(0.5 + fastrand::f64());
        self.next = (self.next * 2).min(LONGEST);
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
