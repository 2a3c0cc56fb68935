//! Conversion of counter readings at switches to the values between them.

use std::collections::HashMap;

use super::counted::{Counted, MAX_COUNTERS};
use crate::event::{Cpu, IDLE, Tid, UNKNOWN};

/// Counter readings of a CPU when it switches from one thread to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Time of the reading, in nanoseconds.
    pub time: u64,
    /// The CPU.
    pub cpu: Cpu,
    /// The thread that ran until now.
    pub prev: Tid,
    /// The thread that runs from now on, if that is recorded.
    pub next: Option<Tid>,
    /// Number of switches of this CPU so far, as the kernel counts them. It reveals switches that
    /// were not reported, or whose reading was lost.
    pub switches: Option<u64>,
    /// Time for which counters were requested so far, in nanoseconds. `running` is the time for
    /// which they counted. The two are equal as long as no others need the same counters of the
    /// processor.
    pub asked: u64,
    /// See `asked`.
    pub running: u64,
    /// The readings; 0 after the last counter.
    pub shown: [u64; MAX_COUNTERS],
}

/// The last reading of each CPU.
#[derive(Debug, Default)]
pub struct Readings {
    last: HashMap<Cpu, Reading>,
}

impl Readings {
    /// Takes the next reading of a CPU. Returns the turn that it ends, if all of that is known: the one
    /// of a thread, not of the idle one, with no reading lost since it began.
    pub fn take(&mut self, reading: Reading) -> Option<Counted> {
        let before = self.last.insert(reading.cpu, reading)?;
        let Reading { time, cpu, prev: thread, .. } = reading;
        let is_other = before.next.is_some_and(|next| next != thread);
        let is_next = match (before.switches, reading.switches) {
            (Some(then), Some(now)) => now == then.wrapping_add(1),
            _ => true,
        };
        if thread == IDLE || thread == UNKNOWN || is_other || !is_next {
            return None;
        }
        let ran = time.checked_sub(before.time)?;
        let asked = reading.asked.checked_sub(before.asked)?;
        let uncounted = asked.checked_sub(reading.running.checked_sub(before.running)?)?;
        let mut counts = [0; MAX_COUNTERS];
        for (count, (now, then)) in counts.iter_mut().zip(reading.shown.iter().zip(before.shown)) {
            *count = now.checked_sub(then)?;
        }
        Some(Counted { time, cpu, thread, ran, uncounted, counts })
    }

    /// Notes that readings of a CPU were lost: what ran during that time is not known.
    pub fn lose(&mut self, cpu: Cpu) {
        self.last.remove(&cpu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(time: u64, prev: Tid, shown: u64) -> Reading {
        let mut all = [0; MAX_COUNTERS];
        all[0] = shown;
        Reading {
            time,
            cpu: 1,
            prev,
            next: None,
            switches: None,
            asked: time,
            running: time,
            shown: all,
        }
    }

    fn told(counted: Option<Counted>) -> Option<(u64, Tid, u64, u64, u64)> {
        counted.map(|c| (c.began(), c.thread, c.ran, c.uncounted, c.counts[0]))
    }

    #[test]
    fn what_is_between_two_switches_is_the_turn_that_ends() {
        let mut readings = Readings::default();
        assert_eq!(readings.take(reading(100, 7, 50)), None, "it is not known since when it ran");
        assert_eq!(told(readings.take(reading(130, 8, 55))), Some((100, 8, 30, 0, 5)));
        assert_eq!(readings.take(Reading { cpu: 2, ..reading(140, 9, 0) }), None, "another CPU");
        assert_eq!(told(readings.take(reading(150, IDLE, 56))), None);
        assert_eq!(told(readings.take(reading(160, 7, 58))), Some((150, 7, 10, 0, 2)));
    }

    #[test]
    fn a_turn_of_which_something_is_not_known_is_none() {
        let mut readings = Readings::default();
        readings.take(reading(100, 7, 50));
        readings.lose(1);
        assert_eq!(readings.take(reading(130, 8, 55)), None, "lost");
        assert_eq!(readings.take(reading(140, UNKNOWN, 56)), None, "nobody");
        assert_eq!(readings.take(reading(150, 8, 40)), None, "it goes back");
        assert_eq!(readings.take(reading(145, 8, 60)), None, "so does time");
        readings.take(Reading { next: Some(9), ..reading(160, 8, 70) });
        assert_eq!(readings.take(reading(170, 7, 71)), None, "a switch is missing");
        readings.take(Reading { next: Some(9), ..reading(180, 8, 72) });
        assert_eq!(told(readings.take(reading(190, 9, 75))), Some((180, 9, 10, 0, 3)));
    }

    /// A guest's kernel (6.18) writes no sample for most switches away from the idle thread, and counts them.
    #[test]
    fn a_switch_without_a_reading_shows_by_their_number() {
        let mut readings = Readings::default();
        let at = |time, switches| Reading { switches: Some(switches), ..reading(time, 8, time) };
        readings.take(at(100, 5));
        assert_eq!(told(readings.take(at(110, 6))), Some((100, 8, 10, 0, 10)));
        assert_eq!(readings.take(at(120, 8)), None);
        assert_eq!(told(readings.take(at(130, 9))), Some((120, 8, 10, 0, 10)));
    }

    #[test]
    fn lent_counters_are_told() {
        let mut readings = Readings::default();
        readings.take(reading(100, 7, 50));
        let lent = Reading { running: 120, ..reading(140, 8, 55) };
        assert_eq!(told(readings.take(lent)), Some((100, 8, 40, 20, 5)));
    }
}
