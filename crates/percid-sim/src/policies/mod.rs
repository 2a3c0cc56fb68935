//! Policies for concurrency IDs: which ID a running thread of a process holds.
//!
//! One file each, and one line each in [`ALL`]. A policy serves one process. Its driver, the engine
//! or a replay of a recorded schedule, tells it what the scheduler does, in the order in which a
//! kernel would notice, and asks for the ID when a running thread uses its per-ID data.

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
pub mod releases;
#[cfg(test)]
mod scenario;
mod slots;
#[cfg(test)]
mod tests;
mod threads;

use percid_rules::Generation;
use serde::Serialize;

pub use impossible::Impossible;

use crate::time::Ns;
use crate::topology::{Cpu, Topology};

/// A thread, numbered from 0 over the life of its process; numbers are not reused.
pub type Thread = u32;

/// A concurrency ID.
pub type Id = u32;

/// What a policy may see of its process and of the machine.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    /// The time.
    pub now: Ns,
    /// The machine.
    pub topology: &'a Topology,
    /// The threads of the process.
    pub users: u32,
    /// The weight of the union of the CPUs allowed to any of its threads so far (R2).
    pub nr_cpus_allowed: u32,
    /// The weight of the CPUs allowed to one thread, which is what older generations looked at.
    pub thread_allowed: &'a [u32],
    /// For each CPU, the thread of this process that runs there.
    pub running: &'a [Option<Thread>],
}

/// What a policy did besides answering, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// IDs taken from another CPU.
    pub steals: u64,
    /// Scans over all CPUs for IDs that were not used lately.
    pub scans: u64,
    /// IDs that such scans took back.
    pub expired: u64,
    /// Times that finding an ID took more than looking at what the CPU or the thread already had.
    pub slow_paths: u64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.steals += other.steals;
        self.scans += other.scans;
        self.expired += other.expired;
        self.slow_paths += other.slow_paths;
    }
}

/// What a policy did beyond looking at what was there, in the terms in which a machine has prices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overhead {
    /// How often the running thread went through the slow path of user space.
    pub slow_paths: u32,
    /// The CPU that was fenced to take its ID from it.
    pub fenced: Option<Cpu>,
    /// How often all CPUs were fenced.
    pub fenced_all: u32,
    /// How often the kernel looked at every CPU, in the tick of the running thread.
    pub scans: u32,
}

/// A policy for concurrency IDs.
///
/// In all methods the thread belongs to the process, and `process` describes it after the change
/// that the method tells of.
///
/// Where an ID is needed, the answer may be that there can be none: see [`Impossible`]. A policy
/// that said so is not asked again.
pub trait Policy: Send {
    /// On `cpu` the kernel switches from `prev` to `next`. `None` is idle or a thread of another
    /// process.
    fn switch(
        &mut self,
        _process: &Process<'_>,
        _cpu: Cpu,
        _prev: Option<Thread>,
        _next: Option<Thread>,
    ) -> Result<(), Impossible> {
        Ok(())
    }

    /// A thread that last ran on `from` is queued on `to`, and does not run yet.
    fn migrate(&mut self, _process: &Process<'_>, _thread: Thread, _from: Cpu, _to: Cpu) {}

    /// The timer tick finds `thread` running on `cpu`.
    fn tick(&mut self, _process: &Process<'_>, _cpu: Cpu, _thread: Thread) {}

    /// A new thread was counted among the users. It has not run yet.
    fn spawn(&mut self, _process: &Process<'_>, _thread: Thread) {}

    /// A thread that runs on `cpu` ends: it is no user any more, and will be switched away from.
    fn exit(&mut self, _process: &Process<'_>, _thread: Thread, _cpu: Cpu) {}

    /// The affinity of a thread changed.
    fn affinity(&mut self, _process: &Process<'_>, _thread: Thread) {}

    /// `thread`, running on `cpu`, replaces the program: it is the only thread of a new address
    /// space (R10).
    fn exec(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<(), Impossible>;

    /// The ID by which `thread`, running on `cpu`, selects its data now.
    fn id(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<Id, Impossible>;

    /// What it did so far.
    fn work(&self) -> Work;

    /// What it did since this was asked last, for which the thread of the last [`tick`](Self::tick)
    /// or [`id`](Self::id) has to pay.
    fn take_overhead(&mut self) -> Overhead {
        Overhead::default()
    }
}

/// A policy that can be asked for by name.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name, as on the command line and in tables.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Makes one for a process on this machine.
    pub create: fn(&Topology) -> Box<dyn Policy>,
}

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

/// The policy with this name.
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

/// The policy of a generation of the kernel's IDs.
pub fn of_generation(generation: Generation) -> &'static Entry {
    let entry = OF_GENERATIONS.iter().find(|(of, _)| *of == generation);
    entry.map(|(_, entry)| entry).expect("as many policies as generations, and no two for one")
}
