//! What a burst costs: the class of what it touches, and the law of each class; and what finding an
//! ID costs.

use serde::Serialize;

use crate::machine::{Costs, Machine};
use crate::policies::Overhead;
use crate::time::{Ns, SECOND};
use crate::topology::{Cpu, Reach, Topology};
use crate::workload::Memory;

/// What a burst finds where its ID's area is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// This core touched it last, and has not idled since.
    Hot,
    /// This core touched it last, and has idled since.
    Own,
    /// Another core behind the same last-level cache touched it last.
    SameL3,
    /// A core behind another last-level cache of the same socket did.
    SameSocket,
    /// A core of another socket did.
    OtherSocket,
    /// No core has ever touched it.
    FirstTouch,
}

impl Class {
    /// All classes, from cheap to dear.
    pub const ALL: [Class; 6] = [
        Class::Hot,
        Class::Own,
        Class::SameL3,
        Class::SameSocket,
        Class::OtherSocket,
        Class::FirstTouch,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Hot => "hot",
            Class::Own => "own",
            Class::SameL3 => "same L3",
            Class::SameSocket => "same socket",
            Class::OtherSocket => "other socket",
            Class::FirstTouch => "first touch",
        }
    }
}

/// Cache lines of a burst.
const LINES: f64 = 256.0;

/// The idle time at which the laws of cooling start.
const COOLING_UNIT: f64 = SECOND as f64;

/// The prices of one machine and one kind of memory.
#[derive(Debug, Clone)]
pub struct Prices {
    costs: Costs,
    memory: Memory,
    /// Idle times up to which what this core touched last stays hot, in nanoseconds.
    stays_hot: f64,
}

impl Prices {
    /// The prices of bursts on this kind of memory.
    pub fn new(machine: &Machine, memory: Memory) -> Prices {
        let costs = machine.costs.clone();
        let warmth = (costs.hot_ns.value - costs.own_ns.value) / costs.cooling_ns.value;
        // Without cooling the quotient is infinite, or no number where nothing is gained: then all
        // stays hot.
        let stays_hot =
            if warmth.is_nan() { f64::INFINITY } else { COOLING_UNIT * libm::exp(warmth) };
        Prices { costs, memory, stays_hot }
    }

    /// What a burst on `cpu` finds, if `last` touched the area before it, and what it costs. `idle`
    /// is how long the core idled since it touched the area; if it did not, how long it idled
    /// before it woke.
    ///
    /// The laws, with that time T and the machine file's names:
    ///
    /// ```text
    /// own(T)         = max(hot_ns, own_ns + cooling_ns x ln(T / 1 s))
    /// from elsewhere = own(T) + 256 lines x latency / overlap
    /// first touch    = own(T) + max(first_touch_hot_us,
    ///                               first_touch_us + first_touch_cooling_us x ln(T / 1 s))
    /// ```
    ///
    /// An area of this core is hot where own(T) is not above `hot_ns`.
    pub fn burst(&self, topology: &Topology, cpu: Cpu, last: Option<Cpu>, idle: Ns) -> (Class, Ns) {
        let own = self.own(idle);
        let (class, ns) = match last.map(|last| topology.reach(cpu, last)) {
            None => (Class::FirstTouch, own + self.first_touch(idle)),
            Some(Reach::Core) if own <= self.costs.hot_ns.value => (Class::Hot, own),
            Some(Reach::Core) => (Class::Own, own),
            Some(Reach::L3) => (Class::SameL3, own + self.transfer(self.costs.same_l3_ns.value)),
            Some(Reach::Socket) => {
                (Class::SameSocket, own + self.transfer(self.costs.same_socket_ns.value))
            }
            Some(Reach::Machine) => {
                (Class::OtherSocket, own + self.transfer(self.costs.other_socket_ns.value))
            }
        };
        (class, ns as Ns)
    }

    /// What each further burst at once costs.
    pub fn hot(&self) -> Ns {
        self.costs.hot_ns.value as Ns
    }

    /// What slow paths and scans cost the thread that goes through them, without fences.
    pub fn work(&self, overhead: &Overhead, cpus: u32) -> Ns {
        let slow_paths = f64::from(overhead.slow_paths) * self.costs.slow_path_ns.value;
        let scans = f64::from(overhead.scans) * f64::from(cpus) * self.costs.scan_cpu_ns.value;
        (slow_paths + scans) as Ns
    }

    /// What a fence costs the thread that issues it, if the process runs on `running` of the fenced
    /// CPUs.
    pub fn fence(&self, running: u32) -> Ns {
        let ns = match running.checked_sub(1) {
            None => self.costs.fence_idle_ns.value,
            Some(more) => {
                self.costs.fence_running_ns.value + f64::from(more) * self.costs.fence_each_ns.value
            }
        };
        ns as Ns
    }

    /// What a fence costs each thread that it interrupts.
    pub fn interrupt(&self) -> Ns {
        self.costs.interrupt_ns.value as Ns
    }

    fn own(&self, idle: Ns) -> f64 {
        if idle as f64 <= self.stays_hot {
            return self.costs.hot_ns.value;
        }
        let cooled = cooled(self.costs.own_ns.value, self.costs.cooling_ns.value, idle);
        cooled.max(self.costs.hot_ns.value)
    }

    fn transfer(&self, latency: f64) -> f64 {
        LINES * latency / self.costs.overlap.value
    }

    fn first_touch(&self, idle: Ns) -> f64 {
        let costs = &self.costs;
        let cooled = cooled(costs.first_touch_us.value, costs.first_touch_cooling_us.value, idle);
        let share = match self.memory {
            Memory::ZeroPage => costs.zero_page_share.value,
            Memory::CopyOnWrite | Memory::PreFaulted => 1.0,
        };
        1000.0 * share * cooled.max(costs.first_touch_hot_us.value)
    }
}

fn cooled(start: f64, slope: f64, idle: Ns) -> f64 {
    start + slope * libm::log(idle.max(1) as f64 / COOLING_UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> (Prices, Topology) {
        let machine = Machine::preset("epyc-9654").expect("a preset");
        (Prices::new(&machine, Memory::CopyOnWrite), machine.topology)
    }

    #[test]
    fn classes_follow_who_touched_last_and_dearer_ones_cost_more() {
        let (prices, topology) = prices();
        let idle = SECOND / 5;
        let found = [Some(0), Some(192), Some(1), Some(8), Some(96), None]
            .map(|last| prices.burst(&topology, 0, last, idle));
        assert_eq!(
            found.map(|(class, _)| class),
            [
                Class::Own,
                Class::Own,
                Class::SameL3,
                Class::SameSocket,
                Class::OtherSocket,
                Class::FirstTouch
            ]
        );
        assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{found:?}");
    }

    #[test]
    fn a_fence_costs_more_the_more_cpus_it_interrupts() {
        let (prices, _) = prices();
        let costs = &prices.costs;
        assert_eq!(prices.fence(0), costs.fence_idle_ns.value as Ns);
        assert_eq!(prices.fence(1), costs.fence_running_ns.value as Ns);
        let ten = costs.fence_running_ns.value + 9.0 * costs.fence_each_ns.value;
        assert_eq!(prices.fence(10), ten as Ns);
    }

    #[test]
    fn what_this_core_just_touched_is_hot() {
        let (prices, topology) = prices();
        assert_eq!(prices.burst(&topology, 5, Some(5), 0), (Class::Hot, prices.hot()));
    }
}
