//! How long a core idled.

use crate::time::Ns;

/// A core that is busy as long as one of its CPUs is, and how long it idled in between.
///
/// What cools a core's data is how deep it slept, and it sleeps the deeper the longer a single
/// period is. So what counts is the longest idle period since some time.
#[derive(Debug, Clone, Default)]
pub struct IdleHistory {
    busy: u32,
    idle_since: Ns,
    /// When idle periods ended, and how long they had been, each shorter than those before it: a
    /// longer one makes those before it forgotten.
    periods: Vec<(Ns, Ns)>,
}

impl IdleHistory {
    /// Whether all CPUs of the core are idle.
    pub fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// A CPU of the core begins to run something.
    pub fn enter(&mut self, now: Ns) {
        if self.busy == 0 {
            let period = now - self.idle_since;
            while self.periods.last().is_some_and(|&(_, earlier)| earlier <= period) {
                self.periods.pop();
            }
            self.periods.push((now, period));
        }
        self.busy += 1;
    }

    /// A CPU of the core runs nothing any more.
    pub fn leave(&mut self, now: Ns) {
        self.busy -= 1;
        if self.busy == 0 {
            self.idle_since = now;
        }
    }

    /// The longest idle period that ended after a time.
    pub fn longest_since(&self, time: Ns) -> Ns {
        match self.periods.last() {
            Some(&(ended, _)) if ended > time => {
                let first = self.periods.partition_point(|&(ended, _)| ended <= time);
                self.periods[first].1
            }
            _ => 0,
        }
    }

    /// The idle period that ended last.
    pub fn last(&self) -> Ns {
        self.periods.last().map_or(0, |&(_, period)| period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_period_since_a_time_is_found() {
        let mut history = IdleHistory::default();
        for (from, to) in [(0, 5), (6, 106), (107, 117), (118, 138), (139, 140)] {
            if from > 0 {
                history.leave(from);
            }
            history.enter(to);
        }
        assert_eq!(history.longest_since(0), 100);
        assert_eq!(history.longest_since(106), 20, "what ended then is over");
        assert_eq!(history.longest_since(138), 1);
        assert_eq!(history.longest_since(140), 0);
        assert_eq!(history.last(), 1);
        assert_eq!(history.periods.len(), 3, "10 was forgotten for 20");
    }

    #[test]
    fn a_core_is_idle_when_all_its_cpus_are() {
        let mut history = IdleHistory::default();
        history.enter(0);
        history.enter(10);
        history.leave(20);
        assert!(!history.is_idle());
        history.leave(30);
        history.enter(35);
        assert_eq!(history.last(), 5);
    }
}
