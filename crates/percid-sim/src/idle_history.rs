//! How long CPUs, cores and the cores behind last-level caches idled.

use crate::cost::Idle;
use crate::time::Ns;
use crate::topology::{Cpu, Topology};

/// A core, or all that is behind a last-level cache: it is busy as long as one of its CPUs is. How
/// long it idled in between.
///
/// What cools the data of a core is how deep it slept, and it sleeps the deeper the longer a single
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

/// The idle periods of a machine.
#[derive(Debug)]
pub struct Idleness {
    cpus: Vec<LastPeriod>,
    cores: Vec<IdleHistory>,
    l3s: Vec<IdleHistory>,
}

/// When a CPU began to idle, and how long it did so last.
#[derive(Debug, Clone, Copy, Default)]
struct LastPeriod {
    since: Ns,
    period: Ns,
}

impl Idleness {
    /// A machine that idles.
    pub fn new(topology: &Topology) -> Idleness {
        let idle = |count: u32| vec![IdleHistory::default(); count as usize];
        Idleness {
            cpus: vec![LastPeriod::default(); topology.cpus() as usize],
            cores: idle(topology.cores()),
            l3s: idle(topology.l3s()),
        }
    }

    /// Whether all CPUs of a CPU's core idle.
    pub fn is_core_idle(&self, topology: &Topology, cpu: Cpu) -> bool {
        self.cores[topology.place(cpu).core as usize].is_idle()
    }

    /// An idle CPU begins to run something.
    pub fn enter(&mut self, topology: &Topology, cpu: Cpu, now: Ns) {
        let last = &mut self.cpus[cpu as usize];
        last.period = now - last.since;
        let place = topology.place(cpu);
        self.cores[place.core as usize].enter(now);
        self.l3s[place.l3 as usize].enter(now);
    }

    /// A CPU runs nothing any more.
    pub fn leave(&mut self, topology: &Topology, cpu: Cpu, now: Ns) {
        self.cpus[cpu as usize].since = now;
        let place = topology.place(cpu);
        self.cores[place.core as usize].leave(now);
        self.l3s[place.l3 as usize].leave(now);
    }

    /// How long a busy CPU, its core and what is behind its last-level cache idled since some
    /// memory was touched; if it never was, before they woke.
    pub fn idle(&self, topology: &Topology, cpu: Cpu, touched: Option<Ns>) -> Idle {
        let place = topology.place(cpu);
        let period = |history: &IdleHistory| match touched {
            Some(touched) => history.longest_since(touched),
            None => history.last(),
        };
        Idle {
            cpu: self.cpus[cpu as usize].period,
            core: period(&self.cores[place.core as usize]),
            l3: period(&self.l3s[place.l3 as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn a_cache_is_awake_while_one_of_its_cores_is() {
        let topology = Machine::preset("epyc-9654").expect("a preset").topology;
        let mut idleness = Idleness::new(&topology);
        idleness.enter(&topology, 0, 100);
        idleness.leave(&topology, 0, 110);
        // Another core of the same cache, and the other thread of the first core.
        idleness.enter(&topology, 1, 130);
        idleness.enter(&topology, 192, 160);
        assert!(!idleness.is_core_idle(&topology, 0));
        assert_eq!(idleness.idle(&topology, 192, Some(105)), Idle { cpu: 160, core: 50, l3: 20 });
        assert_eq!(idleness.idle(&topology, 192, None), Idle { cpu: 160, core: 50, l3: 20 });
        idleness.leave(&topology, 192, 170);
        idleness.enter(&topology, 0, 175);
        assert_eq!(idleness.idle(&topology, 0, Some(165)), Idle { cpu: 65, core: 5, l3: 0 });
    }

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
