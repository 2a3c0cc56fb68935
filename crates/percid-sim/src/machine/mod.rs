//! Machines: where their CPUs sit, how their kernel ticks, and what memory costs on them.

mod check;

use serde::{Deserialize, Serialize};

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

/// A number of a simulation by its name, for tables.
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    /// Its name in the file of the machine or of the workload.
    pub name: &'static str,
    /// The number, in the unit that its name ends with.
    pub value: f64,
    /// Where it comes from.
    pub origin: String,
    /// Whether it was chosen so that a published table comes out.
    pub fitted: bool,
}

impl From<(&'static str, &Sourced)> for Parameter {
    fn from((name, number): (&'static str, &Sourced)) -> Parameter {
        let Sourced { value, origin, fitted } = number.clone();
        Parameter { name, value, origin, fitted }
    }
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

/// Declares a table of the file: numbers with their sources, which can be listed by name.
macro_rules! sourced_numbers {
    ($(#[$doc:meta])* $table:ident { $($(#[$number_doc:meta])* $number:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $table {
            $($(#[$number_doc])* pub $number: Sourced,)*
        }

        impl $table {
            /// All numbers by name.
            pub fn all(&self) -> Vec<(&'static str, &Sourced)> {
                vec![$((stringify!($number), &self.$number),)*]
            }

            /// All numbers by name, to be changed.
            pub fn all_mut(&mut self) -> Vec<(&'static str, &mut Sourced)> {
                vec![$((stringify!($number), &mut self.$number),)*]
            }
        }
    };
}

sourced_numbers! {
    /// What the kernel does by the clock.
    Kernel {
        /// Timer ticks in a second on a CPU that is not idle.
        hz,
        /// How long a thread runs, in milliseconds, before a waiting one takes its place at the
        /// next tick.
        slice_ms,
    }
}

sourced_numbers! {
    /// What one burst costs: one added to each byte of a 16 kB area, 256 cache lines; and what
    /// finding an ID costs where that is more than looking at what is there.
    ///
    /// The classes and the laws are those of the event model in `docs/simulator.md`.
    Costs {
        /// An area that this core touched last and has not idled since, in nanoseconds per burst.
        hot_ns,
        /// What this core touched last costs after it idled for one second, in nanoseconds per
        /// burst.
        own_ns,
        /// What is added each time the idle period is e times longer, in nanoseconds per burst.
        cooling_ns,
        /// Lines in flight at the same time when they come from another core.
        overlap,
        /// A line from another core behind the same last-level cache, in nanoseconds.
        same_l3_ns,
        /// A line from another last-level cache in the same socket, in nanoseconds.
        same_socket_ns,
        /// A line from another socket, in nanoseconds.
        other_socket_ns,
        /// First touch of an area: its four faults on copy-on-write memory after the core idled for
        /// one second, in microseconds.
        first_touch_us,
        /// What is added to that each time the idle period is e times longer, in microseconds.
        first_touch_cooling_us,
        /// What the four faults cost at least, in microseconds.
        first_touch_hot_us,
        /// What first touch of memory that starts as zeroes costs, as a share of that of
        /// copy-on-write memory.
        zero_page_share,
        /// A slow path of percid's table without its fences, in nanoseconds: its system calls and
        /// the choice of an ID.
        slow_path_ns,
        /// A fence of a CPU that does not run the process, in nanoseconds.
        fence_idle_ns,
        /// A fence of a CPU that runs the process, in nanoseconds.
        fence_running_ns,
        /// What a fence of all CPUs takes more for each further CPU that runs the process, in
        /// nanoseconds.
        fence_each_ns,
        /// What a thread loses that is interrupted by a fence, in nanoseconds.
        interrupt_ns,
        /// What the kernel's scan for unused IDs takes for each CPU of the machine, in nanoseconds.
        scan_cpu_ns,
    }
}

impl Kernel {
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
