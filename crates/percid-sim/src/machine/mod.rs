//! Machine models: the places of their CPUs, the timing of their kernel, and the costs of memory
//! accesses.

mod base;
mod check;
mod given;
mod lists;
mod shape;

use serde::{Deserialize, Serialize};

use crate::topology::Topology;

/// A machine model for policies and workloads. Every number has its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The name, for tables.
    pub name: String,
    /// The place of each CPU.
    pub topology: Topology,
    /// The timing of the kernel.
    pub kernel: Kernel,
    /// Costs of bursts and of finding IDs.
    pub costs: Costs,
}

/// A number and its origin.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced {
    /// The number, in the unit that the field's name ends with.
    pub value: f64,
    /// The origin in words: a publication, a measurement, a fit or an assumption.
    pub origin: String,
    /// `true` if it was fitted to a published table.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fitted: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Sourced {
    /// Returns the number as an assumption for another machine. `like` is the name of the machine
    /// that it belongs to.
    pub fn assumed_like(&self, like: &str) -> Sourced {
        let origin = format!("assumption: as for {like} ({})", self.origin);
        Sourced { value: self.value, origin, fitted: false }
    }
}

/// A number of a simulation with its name, for tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// Its name in the file of the machine or of the workload.
    pub name: &'static str,
    /// The number, in the unit that its name ends with.
    pub value: f64,
    /// The origin of the number.
    pub origin: String,
    /// `true` if it was fitted to a published table.
    pub fitted: bool,
}

impl From<(&'static str, &Sourced)> for Parameter {
    fn from((name, number): (&'static str, &Sourced)) -> Parameter {
        let Sourced { value, origin, fitted } = number.clone();
        Parameter { name, value, origin, fitted }
    }
}

/// Declares a table of the file: numbers with their origins, which can be listed by name. Also
/// declares the same table with optional numbers, as a file gives it.
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
            /// Returns all numbers by name.
            pub fn all(&self) -> Vec<(&'static str, &Sourced)> {
                vec![$((stringify!($number), &self.$number),)*]
            }

            /// Returns all numbers by name, mutably.
            pub fn all_mut(&mut self) -> Vec<(&'static str, &mut Sourced)> {
                vec![$((stringify!($number), &mut self.$number),)*]
            }

            /// Returns all numbers as assumptions for another machine. `like` is the name of the
            /// machine that they belong to.
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
            /// Returns the given numbers by name.
            fn all(&self) -> Vec<(&'static str, &Sourced)> {
                let all = [$((stringify!($number), &self.$number),)*];
                all.into_iter().filter_map(|(name, number)| Some((name, number.as_ref()?))).collect()
            }

            fn is_empty(&self) -> bool {
                self.all().is_empty()
            }

            /// Returns all numbers: the given ones, and for the rest those of the base, whose name
            /// is `like`. The error is the name of the first number that neither has.
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
    /// The timing of the kernel.
    Kernel, KernelGiven {
        /// Timer ticks per second on a CPU that is not idle.
        hz,
        /// Run time of a thread, in milliseconds, after which a waiting one replaces it at the next
        /// tick.
        slice_ms,
    }
}

sourced_numbers! {
    /// Costs of a burst and of finding an ID. A burst adds one to each byte of a 16 kB area, which
    /// is 256 cache lines. The cost of finding an ID counts only beyond that of reading an existing
    /// one.
    ///
    /// `docs/explanation/simulator-model.md` describes the classes and the formulas, in the event model.
    Costs, CostsGiven {
        /// Cost of a burst on an area that this core touched last, without idling since, in
        /// nanoseconds per burst.
        hot_ns,
        /// Additional cost if the core and its cache have lost all of it by idling, in nanoseconds
        /// per burst.
        cold_ns,
        /// Idle time of core and cache after which half of it is lost, in milliseconds.
        cooling_ms,
        /// Capacity of a core's own caches, in KiB.
        core_cache_kb,
        /// Capacity of a last-level cache, in KiB.
        l3_cache_kb,
        /// Additional cost of a hot burst, in nanoseconds, if other data has displaced the area from
        /// the core's own caches only.
        refill_l3_ns,
        /// Additional cost of a hot burst, in nanoseconds, if the area has been displaced from the
        /// last-level cache, too, and comes from memory.
        refill_memory_ns,
        /// Data that other programs, and other virtual machines on the same host, bring into each
        /// cache, in MB per second.
        background_mb_s,
        /// Factor by which a burst takes longer while the core's other hardware thread is busy.
        sibling_factor,
        /// Number of simultaneous transfers of lines from another core.
        overlap,
        /// Latency of a line from another core behind the same last-level cache, in nanoseconds.
        same_l3_ns,
        /// Latency of a line from another last-level cache in the same socket, in nanoseconds.
        same_socket_ns,
        /// Latency of a line from another socket, in nanoseconds.
        other_socket_ns,
        /// Cost of the first touch of an area on a CPU that has not idled, in microseconds. An area
        /// has four page faults on copy-on-write memory.
        first_touch_hot_us,
        /// Additional cost of a first touch if the CPU has lost all data that faults need by
        /// idling, in microseconds.
        first_touch_us,
        /// Idle time of the CPU after which half of that data is lost, in milliseconds.
        first_touch_cooling_ms,
        /// Cost of the first touch of memory that starts as zeroes, relative to copy-on-write
        /// memory.
        zero_page_share,
        /// Cost of a slow path of percid's table without its fences, in nanoseconds: its system
        /// calls and the choice of an ID.
        slow_path_ns,
        /// Cost of a fence of a CPU that does not run the process, in nanoseconds.
        fence_idle_ns,
        /// Cost of a fence of a CPU that runs the process, in nanoseconds.
        fence_running_ns,
        /// Additional cost of a fence of all CPUs for each further CPU that runs the process, in
        /// nanoseconds.
        fence_each_ns,
        /// Time that a thread loses when a fence interrupts it, in nanoseconds.
        interrupt_ns,
        /// Cost of the kernel's scan for unused IDs per CPU of the machine, in nanoseconds.
        scan_cpu_ns,
    }
}

impl Kernel {
    /// Returns the time between two ticks, in nanoseconds.
    pub fn tick_ns(&self) -> u64 {
        (1e9 / self.hz.value) as u64
    }
}

/// The machines that come with the simulator: short name and text of the file.
const PRESETS: [(&str, &str); 3] = [
    ("epyc-9654", include_str!("../../machines/epyc-9654.toml")),
    ("cascade-lake", include_str!("../../machines/cascade-lake.toml")),
    ("ivy-bridge-ex", include_str!("../../machines/ivy-bridge-ex.toml")),
];

impl Machine {
    /// Returns the names of the machines that come with the simulator.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// Returns the machine with this name, if it comes with the simulator.
    pub fn preset(name: &str) -> Option<Machine> {
        Machine::preset_text(name)
            .map(|text| Machine::parse(text).expect("the tests read all presets"))
    }

    /// Returns the file of a machine that comes with the simulator, as a start for a user's own
    /// file.
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

    /// Numbers that a preset inherits are assumptions, and not fitted.
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
    fn siblings_share_a_core_and_neighbours_a_cache() {
        let places = Machine::preset("epyc-9654").expect("a preset").topology;
        assert_eq!(places.place(0).core, places.place(192).core);
        assert_eq!(places.place(7).l3, places.place(0).l3);
        assert_ne!(places.place(8).l3, places.place(0).l3);
        assert_eq!(places.place(95).socket, 0);
        assert_eq!(places.place(96).socket, 1);
    }
}
