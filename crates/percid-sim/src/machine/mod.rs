//! Machines: where their CPUs sit, how their kernel ticks, and what memory costs on them.

mod base;
mod check;
mod given;
mod lists;
mod shape;

use serde::{Deserialize, Serialize};

use crate::topology::Topology;
use given::Given;

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

/// A number and where it comes from.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced {
    /// The number, in the unit that the field's name ends with.
    pub value: f64,
    /// A publication, a measurement, a fit or an assumption, in words.
    pub origin: String,
    /// Whether it was chosen so that a published table comes out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fitted: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Sourced {
    /// The number as it is assumed for another machine than the one that it belongs to, whose name
    /// this is.
    pub fn assumed_like(&self, like: &str) -> Sourced {
        let origin = format!("assumption: as for {like} ({})", self.origin);
        Sourced { value: self.value, origin, fitted: false }
    }
}

/// A number of a simulation by its name, for tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// Declares a table of the file: numbers with their sources, which can be listed by name; and the
/// same table as a file gives it, where numbers may be missing.
macro_rules! sourced_numbers {
    ($(#[$doc:meta])* $table:ident, $given:ident {
        $($(#[$number_doc:meta])* $number:ident,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
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

            /// All numbers as they are assumed for another machine than this one, whose name is
            /// `like`.
            pub fn assumed_like(&self, like: &str) -> $table {
                $table { $($number: self.$number.assumed_like(like),)* }
            }
        }

        #[derive(Debug, Default, Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        struct $given {
            $(#[serde(skip_serializing_if = "Option::is_none")] $number: Option<Sourced>,)*
        }

        impl $given {
            /// The numbers that are given, by name.
            fn all(&self) -> Vec<(&'static str, &Sourced)> {
                let all = [$((stringify!($number), &self.$number),)*];
                all.into_iter().filter_map(|(name, number)| Some((name, number.as_ref()?))).collect()
            }

            fn is_empty(&self) -> bool {
                self.all().is_empty()
            }

            /// All numbers: those that are given, and what the base has, whose name is `like`. The
            /// name of the first that neither has, if there is one.
            fn over(self, base: Option<&$table>, like: &str) -> Result<$table, &'static str> {
                let inherited = base.map(|base| base.assumed_like(like));
                Ok($table {
                    $($number: self
                        .$number
                        .or(inherited.as_ref().map(|base| base.$number.clone()))
                        .ok_or(stringify!($number))?,)*
                })
            }
        }

        impl From<&$table> for $given {
            fn from(whole: &$table) -> $given {
                $given { $($number: Some(whole.$number.clone()),)* }
            }
        }
    };
}

sourced_numbers! {
    /// What the kernel does by the clock.
    Kernel, KernelGiven {
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
    Costs, CostsGiven {
        /// An area that this core touched last and has not idled since, in nanoseconds per burst.
        hot_ns,
        /// What is added to that when the core and its cache have lost all of it by idling, in
        /// nanoseconds per burst.
        cold_ns,
        /// How long core and cache idle until half of it is lost, in milliseconds.
        cooling_ms,
        /// What fits into a core's own caches, in KiB.
        core_cache_kb,
        /// What fits into a last-level cache, in KiB.
        l3_cache_kb,
        /// What is added to a hot burst if other data has displaced the area from the core's own
        /// caches, and it is in the last-level cache, in nanoseconds per burst.
        refill_l3_ns,
        /// The same if it has been displaced from both, and comes from memory.
        refill_memory_ns,
        /// What other programs and other machines on the same host bring into each cache, in MB a
        /// second.
        background_mb_s,
        /// How many times longer a burst takes while the core's other hardware thread is busy.
        sibling_factor,
        /// Lines in flight at the same time when they come from another core.
        overlap,
        /// A line from another core behind the same last-level cache, in nanoseconds.
        same_l3_ns,
        /// A line from another last-level cache in the same socket, in nanoseconds.
        same_socket_ns,
        /// A line from another socket, in nanoseconds.
        other_socket_ns,
        /// First touch of an area: what its four faults on copy-on-write memory cost on a CPU that
        /// has not idled, in microseconds.
        first_touch_hot_us,
        /// What is added to that when the CPU has lost by idling all that faults need, in
        /// microseconds.
        first_touch_us,
        /// How long the CPU idles until half of that is lost, in milliseconds.
        first_touch_cooling_ms,
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

    /// The machine as a file, with everything that it may have inherited.
    pub fn to_toml(&self) -> String {
        Given::of(self).to_toml()
    }

    /// The file of a machine whose CPUs sit like this and that has everything else from a base, one
    /// of [`presets`](Machine::presets) or a file.
    pub fn places_to_toml(name: &str, topology: &Topology, base: &str) -> String {
        Given::places_of(name, topology, base).to_toml()
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

    /// What a machine does not have of its own is assumed, and nothing was fitted to it.
    #[test]
    fn presets_say_whose_prices_they_have() {
        let epyc = Machine::preset("epyc-9654").expect("a preset");
        assert!(epyc.costs.cold_ns.fitted);
        for name in ["cascade-lake", "ivy-bridge-ex"] {
            let machine = Machine::preset(name).expect("a preset");
            let own = &machine.costs.cold_ns;
            assert_eq!((own.value, own.fitted), (epyc.costs.cold_ns.value, false));
            let origin = "assumption: as for 2 x AMD EPYC 9654 (fitted to the published table)";
            assert_eq!(own.origin, origin);
            assert!(!machine.costs.other_socket_ns.origin.contains("EPYC"), "{name}");
        }
    }

    #[test]
    fn a_machine_is_the_same_when_its_file_is_read() {
        let mut machines: Vec<Machine> = Machine::presets().filter_map(Machine::preset).collect();
        let mut irregular = machines[0].clone();
        irregular.name = "\"quoted\"\n[costs]".to_owned();
        irregular.topology = Topology::new(irregular.topology.places()[..100].to_vec());
        irregular.costs.hot_ns.value = 226.600_000_1;
        machines.push(irregular);
        for machine in machines {
            let text = machine.to_toml();
            assert!(!text.contains("base = "), "{text}");
            assert_eq!(Machine::parse(&text).as_ref(), Ok(&machine), "{text}");
        }
    }

    #[test]
    fn a_file_of_places_has_all_else_from_its_base() {
        let base = Machine::preset("epyc-9654").expect("a preset");
        let places = Machine::preset("cascade-lake").expect("a preset").topology;
        let text = Machine::places_to_toml("mine", &places, "epyc-9654");
        assert!(text.lines().count() < 12, "{text}");
        let machine = Machine::parse(&text).expect("a machine");
        assert_eq!((&machine.topology, machine.name.as_str()), (&places, "mine"));
        assert_eq!(machine.costs, base.costs.assumed_like(&base.name));
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
