//! Idle times of CPUs, of cores and of the cores behind last-level caches.

use crate::cost::Idle;
use crate::time::Ns;
use crate::topology::{Cpu, Topology};

/// Idle periods of a core, or of all cores behind a last-level cache. It is busy as long as one of
/// its CPUs is.
///
/// The data of a core cools with the depth of its sleep, and a core sleeps deeper the longer a
/// single idle period is. So the model uses the longest idle period since some time.
#[derive(Debug, Clone, Default)]
pub struct IdleHistory {
    busy: u32,
    idle_since: Ns,
    /// Ends and lengths of idle periods, each shorter than the ones before it: a longer period
    /// removes the shorter ones before it.
    periods: Vec<(Ns, Ns)>,
}

impl IdleHistory {
    /// Returns `true` if all CPUs of the core are idle.
    pub fn is_idle(&self) -> bool {
        self.busy == 0
    }

    /// Records that a CPU of the core begins to run something.
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

    /// Records that a CPU of the core becomes idle.
    pub fn leave(&mut self, now: Ns) {
        self.busy -= 1;
        if self.busy == 0 {
            self.idle_since = now;
        }
    }

    /// Returns the longest idle period that ended after a time.
    pub fn longest_since(&self, time: Ns) -> Ns {
        match self.periods.last() {
            Some(&(ended, _)) if ended > time => {
                let first = self.periods.partition_point(|&(ended, _)| ended <= time);
                self.periods[first].1
            }
            _ => 0,
        }
    }

    /// Returns the idle period that ended last.
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

/// Start of a CPU's idle period, and length of its last complete one.
#[derive(Debug, Clone, Copy, Default)]
struct LastPeriod {
    since: Ns,
    period: Ns,
}

impl Idleness {
    /// Creates the history of a machine on which all CPUs are idle.
    pub fn new(topology: &Topology) -> Idleness {
        let idle = |count: u32| vec![IdleHistory::default(); count as usize];
        Idleness {
            cpus: vec![LastPeriod::default(); topology.cpus() as usize],
            cores: idle(topology.cores()),
            l3s: idle(topology.l3s()),
        }
    }

    /// Returns `true` if all CPUs of a CPU's core are idle.
    pub fn is_core_idle(&self, topology: &Topology, cpu: Cpu) -> bool {
        self.cores[topology.place(cpu).core as usize].is_idle()
    }

    /// Records that an idle CPU begins to run something.
    pub fn enter(&mut self, topology: &Topology, cpu: Cpu, now: Ns) {
        let last = &mut self.cpus[cpu as usize];
        last.period = now - last.since;
        let place = topology.place(cpu);
        self.cores[place.core as usize].enter(now);
        self.l3s[place.l3 as usize].enter(now);
    }

    /// Records that a CPU becomes idle.
    pub fn leave(&mut self, topology: &Topology, cpu: Cpu, now: Ns) {
        self.cpus[cpu as usize].since = now;
        let place = topology.place(cpu);
        self.cores[place.core as usize].leave(now);
        self.l3s[place.l3 as usize].leave(now);
    }

    /// Returns the idle times of a busy CPU, its core and all cores behind its last-level cache,
    /// since some memory was touched. If it never was, returns their last idle periods.
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
        // CPU 1 is another core of the same cache, CPU 192 the other thread of the first core.
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
