//! The cost model of bursts: the class of a burst's memory, the formula of each class, and the cost
//! of finding an ID.

use serde::Serialize;

use crate::caches::{BroughtIn, Capacities, Lost};
use crate::distances::DIRECT;
use crate::machine::{Costs, Machine};
use crate::policies::Overhead;
use crate::time::{MS, Ns};
use crate::topology::{Cpu, Reach, Topology};
use crate::workload::Memory;

/// The state of an ID's area at a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// This core touched it last and has lost hardly any of it: the burst costs at most 5 % more
    /// than an immediately repeated one.
    Hot,
    /// This core touched it last, and has lost some of it by idling or to other data.
    Own,
    /// Another core behind the same last-level cache touched it last.
    SameL3,
    /// A core behind another last-level cache of the same socket touched it last.
    SameSocket,
    /// A core of another socket touched it last.
    OtherSocket,
    /// No core has ever touched it.
    FirstTouch,
}

impl Class {
    /// All classes, from cheap to expensive.
    pub const ALL: [Class; 6] = [
        Class::Hot,
        Class::Own,
        Class::SameL3,
        Class::SameSocket,
        Class::OtherSocket,
        Class::FirstTouch,
    ];

    /// Returns the name for tables.
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

/// Idle times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Idle {
    /// Idle time of the CPU before it woke.
    pub cpu: Ns,
    /// Idle time of its core as a whole since the memory was touched; if it never was, before the
    /// core woke.
    pub core: Ns,
    /// Idle time of all cores behind its last-level cache, likewise.
    pub l3: Ns,
}

/// The state of an ID's area at a burst: all that the cost depends on, except the prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Found {
    /// Distance of the CPU that touched the area last; `None` if no CPU has.
    pub reach: Option<Reach>,
    /// Length of the path to that CPU, in thousandths of the shortest path of this reach.
    pub detour: u32,
    /// Idle times of CPU, core and cache.
    pub idle: Idle,
    /// Bytes brought into core and cache since the last touch.
    pub brought_in: BroughtIn,
    /// `true` if another hardware thread of the core is busy.
    pub sibling_busy: bool,
}

impl Found {
    /// Returns the state for a burst on `cpu` if `last` touched the area before it. Nothing has
    /// been brought into the caches since, and no other hardware thread of the core is busy.
    pub fn new(topology: &Topology, cpu: Cpu, last: Option<Cpu>, idle: Idle) -> Found {
        let reach = last.map(|last| topology.reach(cpu, last));
        let detour = last.map_or(DIRECT, |last| topology.detour(cpu, last));
        Found { reach, detour, idle, brought_in: BroughtIn::default(), sibling_busy: false }
    }

    /// Returns the state with rounded times and bytes, so that many states are equal and can be
    /// priced together.
    pub fn rounded(self) -> Found {
        let Idle { cpu, core, l3 } = self.idle;
        let brought_in =
            BroughtIn { core: rounded(self.brought_in.core), l3: rounded(self.brought_in.l3) };
        let idle = Idle { cpu: rounded(cpu), core: rounded(core), l3: rounded(l3) };
        Found { idle, brought_in, ..self }
    }
}

/// Number of binary digits that rounding keeps. The rounded value is the middle of a class whose
/// width is between 1/16 and 1/32 of it.
const DIGITS: u32 = 5;

fn rounded(time: Ns) -> Ns {
    let dropped = (Ns::BITS - time.leading_zeros()).saturating_sub(DIGITS);
    let middle = if dropped == 0 { 0 } else { 1 << (dropped - 1) };
    (time >> dropped << dropped) + middle
}

/// Maximum cost of a burst of class hot, relative to a hot burst.
const HOT: f64 = 1.05;

/// The numbers in the formulas of [`Prices::burst`] that no machine file has. The engine always
/// uses the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Laws {
    /// Number of cache lines that a burst touches.
    pub lines: f64,
    /// Exponent of the law by which a core's own data cools.
    pub cooling_exponent: f64,
    /// Exponent of the cache's idle time; the exponent of the core's idle time is 1 less this one.
    pub cache_weight: f64,
    /// Exponent of the law by which the data of page faults cools.
    pub first_touch_exponent: f64,
}

impl Default for Laws {
    fn default() -> Laws {
        Laws { lines: 256.0, cooling_exponent: 0.5, cache_weight: 0.5, first_touch_exponent: 1.0 }
    }
}

impl Laws {
    /// Returns all numbers by name.
    pub fn all(&self) -> [(&'static str, f64); 4] {
        let Laws { lines, cooling_exponent, cache_weight, first_touch_exponent } = *self;
        [
            ("lines", lines),
            ("cooling_exponent", cooling_exponent),
            ("cache_weight", cache_weight),
            ("first_touch_exponent", first_touch_exponent),
        ]
    }

    /// Returns a number by its name, mutably.
    pub fn number_mut(&mut self, name: &str) -> Option<&mut f64> {
        match name {
            "lines" => Some(&mut self.lines),
            "cooling_exponent" => Some(&mut self.cooling_exponent),
            "cache_weight" => Some(&mut self.cache_weight),
            "first_touch_exponent" => Some(&mut self.first_touch_exponent),
            _ => None,
        }
    }
}

/// Returns a power. The exponents of the default laws give the same digits on all platforms and
/// cost little.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent == 0.5 {
        f64::sqrt(base)
    } else if exponent == 1.0 {
        base
    } else {
        libm::pow(base, exponent)
    }
}

/// The prices of one machine and one kind of memory.
#[derive(Debug, Clone)]
pub struct Prices {
    costs: Costs,
    capacities: Capacities,
    memory: Memory,
    laws: Laws,
    /// `cooling_ms` in nanoseconds, to the power of the law's exponent.
    cooled_half: f64,
}

impl Prices {
    /// Creates the prices of bursts on this kind of memory.
    pub fn new(machine: &Machine, memory: Memory) -> Prices {
        Prices {
            costs: machine.costs.clone(),
            capacities: Capacities::from_machine(machine),
            memory,
            laws: Laws::default(),
            cooled_half: 0.0,
        }
        .with_laws(Laws::default())
    }

    /// Returns the same prices by other laws.
    #[must_use]
    pub fn with_laws(self, laws: Laws) -> Prices {
        let half = self.costs.cooling_ms.value * MS as f64;
        Prices { laws, cooled_half: power(half, laws.cooling_exponent), ..self }
    }

    /// Returns the class and the cost of a burst.
    ///
    /// The formulas, with the machine file's names and the idle times of [`Found::idle`]:
    ///
    /// ```text
    /// T              = sqrt(core's idle time x cache's idle time)
    /// cooled         = sqrt(T) / (sqrt(T) + sqrt(cooling_ms))
    /// displaced      = 1 - exp(-brought into the core / core_cache_kb), and likewise in the L3
    /// refill         = displaced x (refill_l3_ns + displaced in the L3 x (refill_memory_ns - refill_l3_ns))
    /// warm           = hot_ns + cooled x cold_ns
    /// own            = warm + (1 - cooled) x refill
    /// from elsewhere = warm + 256 lines x latency / overlap
    /// first touch    = warm + first_touch_hot_us
    ///                      + first_touch_us x C / (C + first_touch_cooling_ms), C the CPU's idle time
    /// ```
    ///
    /// All of it takes `sibling_factor` times as long while the core's other hardware thread is
    /// busy.
    ///
    /// Both cooling formulas give the lost share of the warm data. If other data displaces a line
    /// at a constant rate, the line survives an idle time T with probability exp(-T x rate). Over
    /// lines with exponentially distributed rates, that is 1 / (1 + T / half), the second formula.
    /// The first formula has the same half-life with a wider spread of rates: some data is lost at
    /// once, and some only after hours. `docs/measurements/2026-11.md` has results of others.
    pub fn burst(&self, found: &Found) -> (Class, Ns) {
        self.burst_with(found, || self.capacities.lost(&found.brought_in))
    }

    /// Returns the same if the lost shares are known.
    pub(crate) fn burst_with(&self, found: &Found, lost: impl Fn() -> Lost) -> (Class, Ns) {
        let costs = &self.costs;
        let detour = f64::from(found.detour) / f64::from(DIRECT);
        let cooled = self.cooled(&found.idle);
        let warm = costs.hot_ns.value + cooled * costs.cold_ns.value;
        let (class, ns) = match found.reach {
            None => (Class::FirstTouch, warm + self.first_touch(found.idle.cpu)),
            Some(Reach::Core) => {
                let own = warm + (1.0 - cooled) * self.refill(&lost());
                (if own <= HOT * costs.hot_ns.value { Class::Hot } else { Class::Own }, own)
            }
            Some(Reach::L3) => (Class::SameL3, warm + self.transfer(costs.same_l3_ns.value)),
            Some(Reach::Socket) => {
                (Class::SameSocket, warm + self.transfer(detour * costs.same_socket_ns.value))
            }
            Some(Reach::Machine) => {
                (Class::OtherSocket, warm + self.transfer(detour * costs.other_socket_ns.value))
            }
        };
        (class, (ns * self.slowdown(found)) as Ns)
    }

    /// Returns the cost of each further burst without a pause.
    pub fn hot(&self, found: &Found) -> Ns {
        (self.costs.hot_ns.value * self.slowdown(found)) as Ns
    }

    fn slowdown(&self, found: &Found) -> f64 {
        if found.sibling_busy { self.costs.sibling_factor.value } else { 1.0 }
    }

    /// Returns the cost of slow paths and scans for the thread that executes them, without fences.
    pub fn work(&self, overhead: &Overhead, cpus: u32) -> Ns {
        let slow_paths = f64::from(overhead.slow_paths) * self.costs.slow_path_ns.value;
        let scans = f64::from(overhead.scans) * f64::from(cpus) * self.costs.scan_cpu_ns.value;
        (slow_paths + scans) as Ns
    }

    /// Returns the cost of a fence for the thread that issues it, if the process runs on `running`
    /// of the fenced CPUs.
    pub fn fence(&self, running: u32) -> Ns {
        let ns = match running.checked_sub(1) {
            None => self.costs.fence_idle_ns.value,
            Some(more) => {
                self.costs.fence_running_ns.value + f64::from(more) * self.costs.fence_each_ns.value
            }
        };
        ns as Ns
    }

    /// Returns the cost of a fence for each thread that it interrupts.
    pub fn interrupt(&self) -> Ns {
        self.costs.interrupt_ns.value as Ns
    }

    /// Returns the share of a core's warm data that it has lost by idling.
    fn cooled(&self, idle: &Idle) -> f64 {
        let Laws { cooling_exponent, cache_weight, .. } = self.laws;
        let idle =
            power(idle.core as f64, 1.0 - cache_weight) * power(idle.l3 as f64, cache_weight);
        share(power(idle, cooling_exponent), self.cooled_half)
    }

    /// Returns the additional cost of a burst for the part of the area that other data has
    /// displaced.
    fn refill(&self, lost: &Lost) -> f64 {
        let (l3, memory) = (self.costs.refill_l3_ns.value, self.costs.refill_memory_ns.value);
        lost.core * (l3 + lost.l3 * (memory - l3))
    }

    fn transfer(&self, latency: f64) -> f64 {
        self.laws.lines * latency / self.costs.overlap.value
    }

    fn first_touch(&self, idle: Ns) -> f64 {
        let costs = &self.costs;
        let half = costs.first_touch_cooling_ms.value * MS as f64;
        let exponent = self.laws.first_touch_exponent;
        let cooled =
            costs.first_touch_us.value * share(power(idle as f64, exponent), power(half, exponent));
        let memory = match self.memory {
            Memory::ZeroPage => costs.zero_page_share.value,
            Memory::CopyOnWrite | Memory::PreFaulted => 1.0,
        };
        1000.0 * memory * (costs.first_touch_hot_us.value + cooled)
    }
}

/// Returns `part / (part + rest)`, or 0 if `part` is 0.
fn share(part: f64, rest: f64) -> f64 {
    if part > 0.0 { part / (part + rest) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::time::MS;

    fn prices() -> (Prices, Topology) {
        let machine = Machine::preset("epyc-9654").expect("a preset");
        (Prices::new(&machine, Memory::CopyOnWrite), machine.topology)
    }

    #[test]
    fn classes_follow_who_touched_last_and_dearer_ones_cost_more() {
        let (prices, topology) = prices();
        let idle = Idle { cpu: 200 * MS, core: 200 * MS, l3: 100 * MS };
        let found = [Some(0), Some(192), Some(1), Some(8), Some(96), None]
            .map(|last| prices.burst(&Found::new(&topology, 0, last, idle)));
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
    fn half_is_lost_after_the_time_that_the_machine_says() {
        let (prices, topology) = prices();
        let costs = &prices.costs;
        let price = |last, cpu: f64, core: f64, l3: f64| {
            let [cpu, core, l3] = [cpu, core, l3].map(|ms| (ms * MS as f64) as Ns);
            let found = Found::new(&topology, 0, last, Idle { cpu, core, l3 });
            prices.burst(&found).1 as f64
        };
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.001);
        let half = costs.cooling_ms.value;
        let own = costs.hot_ns.value + costs.cold_ns.value / 2.0;
        near(price(Some(0), 1.0, half, half), own);
        near(price(Some(0), 1.0, 4.0 * half, half / 4.0), own);
        near(price(Some(0), 1e6, 1e6, 0.0), costs.hot_ns.value);
        let faults = costs.first_touch_hot_us.value + costs.first_touch_us.value / 2.0;
        let cooled = price(None, costs.first_touch_cooling_ms.value, 0.0, 0.0);
        near(cooled, costs.hot_ns.value + 1000.0 * faults);
    }

    /// Four sockets in a ring: the opposite socket is twice as far as a neighbour.
    #[test]
    fn a_longer_way_costs_more_and_the_shortest_costs_what_the_file_says() {
        let nodes =
            "nodes = [[10, 20, 40, 20], [20, 10, 20, 40], [40, 20, 10, 20], [20, 40, 20, 10]]";
        let text = format!(
            "base = \"ivy-bridge-ex\"\nname = \"ring\"\n[distances]\n{nodes}\norigin = \"a test\"\n"
        );
        let machine = Machine::parse(&text).expect("a machine");
        let prices = Prices::new(&machine, Memory::CopyOnWrite);
        let ns = |topology: &Topology, last: Cpu| {
            let found = Found::new(topology, 0, Some(last), Idle::default());
            prices.burst(&found).1
        };
        let flat = Machine::preset("ivy-bridge-ex").expect("a preset").topology;
        let (near, across) = (15, 30);
        assert_eq!(ns(&machine.topology, near), ns(&flat, near));
        assert_eq!(ns(&flat, across), ns(&flat, near));
        let [hot, near, across] = [0, near, across].map(|last| ns(&machine.topology, last));
        assert!((across - hot).abs_diff(2 * (near - hot)) <= 2, "{hot} {near} {across}");
        assert_eq!(ns(&machine.topology, 1), ns(&flat, 1), "within a node nothing changes");
    }

    #[test]
    fn what_was_displaced_comes_from_the_cache_or_from_memory() {
        let (prices, topology) = prices();
        let found = Found::new(&topology, 0, Some(0), Idle::default());
        let price = |core, l3| prices.burst(&Found { brought_in: BroughtIn { core, l3 }, ..found });
        let (hot, costs) = (prices.hot(&found), &prices.costs);
        let refill = |ns: f64| hot + ns as Ns;
        assert_eq!(price(0, u64::MAX), (Class::Hot, hot), "what the core has it does not miss");
        assert_eq!(price(u64::MAX, 0).1, refill(costs.refill_l3_ns.value));
        assert_eq!(price(u64::MAX, u64::MAX), (Class::Own, refill(costs.refill_memory_ns.value)));
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
    fn rounded_times_are_few_and_cost_the_same_on_the_average() {
        let (prices, topology) = prices();
        assert_eq!([0, 1, 31].map(rounded), [0, 1, 31], "short times stay what they are");
        let times: Vec<Ns> = (10 * MS..500 * MS).step_by(100_000).collect();
        let found = times.iter().flat_map(|&cpu| {
            let idle = Idle { cpu, core: cpu, l3: cpu / 3 };
            [Some(0), Some(96), None].map(|last| Found::new(&topology, 0, last, idle))
        });
        let found: Vec<Found> = found.collect();
        let cost = |found: &Found| prices.burst(found).1 as f64;
        let exact: f64 = found.iter().map(cost).sum();
        let rounded: Vec<Found> = found.into_iter().map(Found::rounded).collect();
        let sum: f64 = rounded.iter().map(cost).sum();
        assert!((sum / exact - 1.0).abs() < 0.0005, "{sum} {exact}");
        let few: BTreeSet<Found> = rounded.into_iter().collect();
        assert!(few.len() < 1000, "{} of {}", few.len(), 3 * times.len());
    }

    #[test]
    fn what_this_core_just_touched_is_hot() {
        let (prices, topology) = prices();
        let found = Found::new(&topology, 5, Some(5), Idle::default());
        assert_eq!(prices.burst(&found), (Class::Hot, prices.hot(&found)));
        let ns = prices.costs.hot_ns.value;
        assert_eq!(prices.hot(&found), ns as Ns);
        let found = Found { sibling_busy: true, ..found };
        assert_eq!(prices.hot(&found), (ns * prices.costs.sibling_factor.value) as Ns);
    }
}
