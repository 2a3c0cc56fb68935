//! Policies for concurrency IDs: rules that assign an ID to each running thread of a process.
//!
//! Each policy has one file, and one line in [`ALL`]. A policy serves one process. Its driver is
//! the engine, or a replay of a recorded schedule. The driver notifies it of the scheduler's
//! actions, in the order in which a kernel would notice them. It requests the ID when a running
//! thread uses its per-ID data.

mod bitmap;
mod impossible;
mod linux_6_13;
mod linux_6_14;
mod linux_6_19;
mod linux_6_3;
mod linux_6_4;
mod per_cpu;
mod per_thread;
mod percid_table;
mod policy;
pub mod releases;
#[cfg(test)]
mod scenario;
mod slots;
#[cfg(test)]
mod tests;
mod threads;

use percid_rules::Generation;

pub use impossible::Impossible;
pub use policy::{Entry, Id, Overhead, Policy, Process, Thread, Work};

/// All policies.
pub const ALL: &[Entry] = &[
    linux_6_3::ENTRY,
    linux_6_4::ENTRY,
    linux_6_13::ENTRY,
    linux_6_14::ENTRY,
    linux_6_19::ENTRY,
    percid_table::ENTRY,
    percid_table::STRICT,
    per_cpu::ENTRY,
    per_thread::ENTRY,
];

/// Returns the policy with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// The policy of each generation of the kernel's IDs.
const OF_GENERATIONS: [(Generation, Entry); Generation::ALL.len()] = [
    (Generation::FirstFree, linux_6_3::ENTRY),
    (Generation::CacheCold, linux_6_4::ENTRY),
    (Generation::NotCompacting, linux_6_13::ENTRY),
    (Generation::CacheLocal, linux_6_14::ENTRY),
    (Generation::Owned, linux_6_19::ENTRY),
];

/// Returns the policy of a generation of the kernel's IDs.
pub fn of_generation(generation: Generation) -> &'static Entry {
    let entry = OF_GENERATIONS.iter().find(|(of, _)| *of == generation);
    entry.map(|(_, entry)| entry).expect("as many policies as generations, and no two for one")
}
