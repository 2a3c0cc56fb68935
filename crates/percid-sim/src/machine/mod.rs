//! Machines: where their CPUs sit, how their kernel ticks, and what memory costs on them.

mod check;

use serde::Deserialize;

use crate::topology::{Place, Topology};

/// A machine as a policy and a workload see it. Every number says where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The name, for tables.
    pub name: String,
    /// Where each CPU sits.
    pub topology: Topology,
    /// What the kernel does by the clock.
    pub kernel: Kernel,
    /// What touching memory costs.
    pub costs: Costs,
}

/// A machine as its file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    topology: Shape,
    kernel: Kernel,
    costs: Costs,
}

/// A number and where it comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced {
    /// The number, in the unit that the field's name ends with.
    pub value: f64,
    /// A publication, a measurement, a fit or an assumption, in words.
    pub origin: String,
    /// Whether it was chosen so that a published table comes out.
    #[serde(default)]
    pub fitted: bool,
}

/// A regular topology, as files describe it; all counts are at least 1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    sockets: u32,
    /// Which divide a socket's last-level caches evenly.
    nodes_per_socket: u32,
    l3s_per_socket: u32,
    cores_per_l3: u32,
    threads_per_core: u32,
    numbering: Numbering,
}

/// The order in which CPUs are numbered.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Numbering {
    /// First one hardware thread of every core, then the next of every core.
    CoresFirst,
    /// The hardware threads of a core follow each other.
    SiblingsAdjacent,
}

/// What the kernel does by the clock.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Timer ticks in a second on a CPU that is not idle.
    pub hz: Sourced,
    /// How long a thread runs, in milliseconds, before a waiting one takes its place at the next tick.
    pub slice_ms: Sourced,
}

/// What one burst costs: one added to each byte of a 16 kB area, 256 cache lines; and what finding an ID costs where
/// that is more than looking at what is there.
///
/// The classes and the laws are those of the event model in `docs/simulator.md`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// An area that this core touched last and has not idled since, in nanoseconds per burst.
    pub hot_ns: Sourced,
    /// What this core touched last costs after it idled for one second, in nanoseconds per burst.
    pub own_ns: Sourced,
    /// What is added each time the idle period is e times longer, in nanoseconds per burst.
    pub cooling_ns: Sourced,
    /// Lines in flight at the same time when they come from another core.
    pub overlap: Sourced,
    /// A line from another core behind the same last-level cache, in nanoseconds.
    pub same_l3_ns: Sourced,
    /// A line from another last-level cache in the same socket, in nanoseconds.
    pub same_socket_ns: Sourced,
    /// A line from another socket, in nanoseconds.
    pub other_socket_ns: Sourced,
    /// First touch of an area: its four faults on copy-on-write memory after the core idled for one second,
    /// in microseconds.
    pub first_touch_us: Sourced,
    /// What is added to that each time the idle period is e times longer, in microseconds.
    pub first_touch_cooling_us: Sourced,
    /// What the four faults cost at least, in microseconds.
    pub first_touch_hot_us: Sourced,
    /// What first touch of memory that starts as zeroes costs, as a share of that of copy-on-write memory.
    pub zero_page_share: Sourced,
    /// A slow path of percid's table without its fences, in nanoseconds: its system calls and the choice of an ID.
    pub slow_path_ns: Sourced,
    /// A fence of a CPU that does not run the process, in nanoseconds.
    pub fence_idle_ns: Sourced,
    /// A fence of a CPU that runs the process, in nanoseconds.
    pub fence_running_ns: Sourced,
    /// What a fence of all CPUs takes more for each further CPU that runs the process, in nanoseconds.
    pub fence_each_ns: Sourced,
    /// What a thread loses that is interrupted by a fence, in nanoseconds.
    pub interrupt_ns: Sourced,
    /// What the kernel's scan for unused IDs takes for each CPU of the machine, in nanoseconds.
    pub scan_cpu_ns: Sourced,
}

impl Costs {
    /// All parameters by name.
    pub fn all(&self) -> [(&'static str, &Sourced); 17] {
        [
            ("hot_ns", &self.hot_ns),
            ("own_ns", &self.own_ns),
            ("cooling_ns", &self.cooling_ns),
            ("overlap", &self.overlap),
            ("same_l3_ns", &self.same_l3_ns),
            ("same_socket_ns", &self.same_socket_ns),
            ("other_socket_ns", &self.other_socket_ns),
            ("first_touch_us", &self.first_touch_us),
            ("first_touch_cooling_us", &self.first_touch_cooling_us),
            ("first_touch_hot_us", &self.first_touch_hot_us),
            ("zero_page_share", &self.zero_page_share),
            ("slow_path_ns", &self.slow_path_ns),
            ("fence_idle_ns", &self.fence_idle_ns),
            ("fence_running_ns", &self.fence_running_ns),
            ("fence_each_ns", &self.fence_each_ns),
            ("interrupt_ns", &self.interrupt_ns),
            ("scan_cpu_ns", &self.scan_cpu_ns),
        ]
    }

    /// The same, to be changed.
    pub fn all_mut(&mut self) -> [(&'static str, &mut Sourced); 17] {
        [
            ("hot_ns", &mut self.hot_ns),
            ("own_ns", &mut self.own_ns),
            ("cooling_ns", &mut self.cooling_ns),
            ("overlap", &mut self.overlap),
            ("same_l3_ns", &mut self.same_l3_ns),
            ("same_socket_ns", &mut self.same_socket_ns),
            ("other_socket_ns", &mut self.other_socket_ns),
            ("first_touch_us", &mut self.first_touch_us),
            ("first_touch_cooling_us", &mut self.first_touch_cooling_us),
            ("first_touch_hot_us", &mut self.first_touch_hot_us),
            ("zero_page_share", &mut self.zero_page_share),
            ("slow_path_ns", &mut self.slow_path_ns),
            ("fence_idle_ns", &mut self.fence_idle_ns),
            ("fence_running_ns", &mut self.fence_running_ns),
            ("fence_each_ns", &mut self.fence_each_ns),
            ("interrupt_ns", &mut self.interrupt_ns),
            ("scan_cpu_ns", &mut self.scan_cpu_ns),
        ]
    }
}

impl Kernel {
    /// All parameters by name.
    pub fn all(&self) -> [(&'static str, &Sourced); 2] {
        [("hz", &self.hz), ("slice_ms", &self.slice_ms)]
    }

    /// The same, to be changed.
    pub fn all_mut(&mut self) -> [(&'static str, &mut Sourced); 2] {
        [("hz", &mut self.hz), ("slice_ms", &mut self.slice_ms)]
    }

    /// The time from one tick to the next, in nanoseconds.
    pub fn tick_ns(&self) -> u64 {
        (1e9 / self.hz.value) as u64
    }
}

impl Shape {
    fn cores(&self) -> u32 {
        self.sockets * self.l3s_per_socket * self.cores_per_l3
    }

    fn cpus(&self) -> u32 {
        self.cores() * self.threads_per_core
    }

    /// Where each CPU sits.
    fn places(&self) -> Topology {
        let core_of = |cpu: u32| match self.numbering {
            Numbering::CoresFirst => cpu % self.cores(),
            Numbering::SiblingsAdjacent => cpu / self.threads_per_core,
        };
        let place = |cpu: u32| {
            let core = core_of(cpu);
            let l3 = core / self.cores_per_l3;
            let l3s_per_node = self.l3s_per_socket / self.nodes_per_socket;
            Place { core, l3, socket: l3 / self.l3s_per_socket, node: l3 / l3s_per_node }
        };
        Topology::new((0..self.cpus()).map(place).collect())
    }
}

/// The machines that come with the simulator: a short name and the file's text.
const PRESETS: [(&str, &str); 3] = [
    ("epyc-9654", include_str!("../../machines/epyc-9654.toml")),
    ("cascade-lake", include_str!("../../machines/cascade-lake.toml")),
    ("ivy-bridge-ex", include_str!("../../machines/ivy-bridge-ex.toml")),
];

impl Machine {
    /// The names of the machines that come with the simulator.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// The machine with this name among those that come with the simulator.
    pub fn preset(name: &str) -> Option<Machine> {
        Machine::preset_text(name)
            .map(|text| Machine::parse(text).expect("the tests read all presets"))
    }

    /// The file of a machine that comes with the simulator: a start for one's own.
    pub fn preset_text(name: &str) -> Option<&'static str> {
        PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_presets_can_be_read() {
        let cpus: Vec<u32> = Machine::presets()
            .map(|name| Machine::preset(name).expect("a preset").topology.cpus())
            .collect();
        assert_eq!(cpus, [384, 96, 120]);
    }

    #[test]
    fn siblings_share_a_core_and_neighbours_a_cache() {
        let places = Machine::preset("epyc-9654").expect("a preset").topology;
        assert_eq!(places.place(0).core, places.place(192).core);
        assert_eq!(places.place(7).l3, places.place(0).l3);
        assert_ne!(places.place(8).l3, places.place(0).l3);
        assert_eq!(places.place(95).socket, 0);
        assert_eq!(places.place(96).socket, 1);
    }
}
