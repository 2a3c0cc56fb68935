//! Idle time of CPUs by the number of idle CPUs, for all CPUs and for sets of them.

use std::cell::Cell;

use crate::event::Cpu;

/// Clock of the idle time of CPUs. A result is the difference of two readings.
#[derive(Debug)]
pub(super) struct IdleClock {
    counters: Vec<SetClock>,
    /// Time since which each CPU idles, and its idle time before.
    cpus: Vec<(Option<u64>, u64)>,
}

/// The clock of one set.
#[derive(Debug)]
struct SetClock {
    set: Vec<bool>,
    /// Number of CPUs that idle, the time since then, and the readings at that time.
    idle: u64,
    since: u64,
    counted: [u64; READINGS],
    /// A CPU that was found to idle.
    found: Cell<Cpu>,
}

/// CPUs that are counted at once: of more, no more are taken to be of use.
pub(super) const MAX_COUNTED_CPUS: usize = 16;
const READINGS: usize = MAX_COUNTED_CPUS + 1;

impl IdleClock {
    /// Makes a clock on which no CPU idles.
    pub(super) fn new(sets: impl IntoIterator<Item = Vec<bool>>, cpus: usize) -> IdleClock {
        let counter =
            |set| SetClock { set, idle: 0, since: 0, counted: [0; READINGS], found: Cell::new(0) };
        let counters = sets.into_iter().map(counter).collect();
        IdleClock { counters, cpus: vec![(None, 0); cpus] }
    }

    /// A CPU begins or ceases to idle.
    pub(super) fn change(&mut self, cpu: Cpu, idles: bool, now: u64) {
        let Some((since, ns)) = self.cpus.get_mut(cpu as usize) else { return };
        if since.is_some() == idles {
            return;
        }
        *ns += since.map_or(0, |since| now.saturating_sub(since));
        *since = idles.then_some(now);
        let with_it = |counter: &&mut SetClock| counter.set.get(cpu as usize) == Some(&true);
        for counter in self.counters.iter_mut().filter(with_it) {
            for at_once in 1..READINGS {
                counter.counted[at_once] = counter.reading(at_once, now);
            }
            counter.since = now;
            counter.idle = if idles { counter.idle + 1 } else { counter.idle.saturating_sub(1) };
        }
    }

    /// The time that CPUs of a set have idled, of which at each moment at most `at_once` count.
    pub(super) fn reading(&self, set: usize, at_once: usize, now: u64) -> u64 {
        self.counters[set].reading(at_once.min(MAX_COUNTED_CPUS), now)
    }

    /// The time that one CPU has idled.
    pub(super) fn of_cpu(&self, cpu: Cpu, now: u64) -> u64 {
        let Some(&(since, ns)) = self.cpus.get(cpu as usize) else { return 0 };
        ns + since.map_or(0, |since| now.saturating_sub(since))
    }

    /// Returns a CPU of a set that idles now. Most are requested many times in one idle time.
    pub(super) fn one_of(&self, set: usize) -> Option<Cpu> {
        let SetClock { set, idle, found, .. } = &self.counters[set];
        let idles = |cpu: Cpu| {
            let since = self.cpus.get(cpu as usize).and_then(|&(since, _)| since);
            since.is_some() && set.get(cpu as usize) == Some(&true)
        };
        if *idle == 0 {
            return None;
        }
        if !idles(found.get()) {
            let all = 0..self.cpus.len() as Cpu;
            found.set(all.into_iter().find(|&cpu| idles(cpu))?);
        }
        Some(found.get())
    }
}

impl SetClock {
    fn reading(&self, at_once: usize, now: u64) -> u64 {
        let idle = self.idle.min(at_once as u64);
        self.counted[at_once] + idle * now.saturating_sub(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_are_counted_as_are_asked_for() {
        let mut clock = IdleClock::new([vec![true; 3], vec![false, true, false]], 3);
        clock.change(0, true, 10);
        clock.change(1, true, 20);
        clock.change(1, true, 25);
        clock.change(0, false, 40);
        assert_eq!([0, 1, 2, 9].map(|at_once| clock.reading(0, at_once, 50)), [0, 40, 60, 60]);
        assert_eq!(clock.reading(1, 1, 50), 30, "that of one CPU");
        assert_eq!((clock.of_cpu(0, 50), clock.of_cpu(1, 50), clock.of_cpu(2, 50)), (30, 30, 0));
        assert_eq!((clock.one_of(0), clock.one_of(1)), (Some(1), Some(1)));
        clock.change(2, true, 60);
        clock.change(1, false, 70);
        assert_eq!((clock.one_of(0), clock.one_of(1)), (Some(2), None));
    }
}
