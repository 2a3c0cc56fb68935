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
pub use policy::{Create, Id, Overhead, Policy, PolicySpec, Process, Thread, Work};

/// All policies.
pub const ALL: &[PolicySpec] = &[
    linux_6_3::SPEC,
    linux_6_4::SPEC,
    linux_6_13::SPEC,
    linux_6_14::SPEC,
    linux_6_19::SPEC,
    percid_table::SPEC,
    percid_table::STRICT,
    per_cpu::SPEC,
    per_thread::SPEC,
];

/// Returns the policy with this name.
pub fn find(name: &str) -> Option<&'static PolicySpec> {
    ALL.iter().find(|entry| entry.name == name)
}

/// Returns the policy with this name, whose unused IDs expire after `factor` times 100 ms. The
/// factors are those of a walk over the inputs of a published table: 0.5, 1 and 2. Policies without
/// expiry stay unchanged.
pub fn with_expiry_times(name: &str, factor: f64) -> Option<&'static PolicySpec> {
    let others: &'static [(f64, PolicySpec)] = match name {
        _ if factor == 1.0 => return find(name),
        "linux-6.4" => &linux_6_4::WITH_OTHER_EXPIRY,
        "linux-6.13" => &linux_6_13::WITH_OTHER_EXPIRY,
        _ => return find(name),
    };
    others.iter().find(|(times, _)| *times == factor).map(|(_, policy)| policy)
}

/// The policy of each generation of the kernel's IDs.
const OF_GENERATIONS: [(Generation, PolicySpec); Generation::ALL.len()] = [
    (Generation::FirstFree, linux_6_3::SPEC),
    (Generation::CacheCold, linux_6_4::SPEC),
    (Generation::NotCompacting, linux_6_13::SPEC),
    (Generation::CacheLocal, linux_6_14::SPEC),
    (Generation::Owned, linux_6_19::SPEC),
];

/// Returns the policy of a generation of the kernel's IDs.
pub fn of_generation(generation: Generation) -> &'static PolicySpec {
    let entry = OF_GENERATIONS.iter().find(|(of, _)| *of == generation);
    entry.map(|(_, entry)| entry).expect("as many policies as generations, and no two for one")
}
