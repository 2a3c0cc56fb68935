//! A policy: the events that it is notified of, its view of a process, and its work.

use std::fmt;

use serde::Serialize;

use super::impossible::Impossible;
use crate::time::Ns;
use crate::topology::{Cpu, Topology};

/// Number of a thread, from 0 over the life of its process; numbers are not reused.
pub type Thread = u32;

/// A concurrency ID.
pub type Id = u32;

/// The view of its process and of the machine that a policy has.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    /// The current time.
    pub now: Ns,
    /// The machine.
    pub topology: &'a Topology,
    /// Number of threads of the process.
    pub users: u32,
    /// Size of the union of the CPUs allowed to any of its threads so far (R2).
    pub nr_cpus_allowed: u32,
    /// Number of CPUs allowed to each thread, which older generations use.
    pub thread_allowed: &'a [u32],
    /// The running thread of this process on each CPU.
    pub running: &'a [Option<Thread>],
}

/// Totals of a policy's work, apart from returning IDs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Number of IDs taken from another CPU.
    pub steals: u64,
    /// Number of scans over all CPUs for IDs that were not used recently.
    pub scans: u64,
    /// Number of IDs that such scans took back.
    pub expired: u64,
    /// Number of times that finding an ID took more than reading that of the CPU or the thread.
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

/// Work of a policy beyond reading an existing ID, in the units of a machine's prices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Number of slow paths in user space that the running thread executed.
    pub slow_paths: u32,
    /// The CPU that was fenced to steal its ID.
    pub fenced: Option<Cpu>,
    /// Number of fences of all CPUs.
    pub fenced_all: u32,
    /// Number of scans of every CPU by the kernel, in the tick of the running thread.
    pub scans: u32,
}

/// A policy for concurrency IDs.
///
/// In all methods, the thread belongs to the process, and `process` describes it after the reported
/// change.
///
/// # Contract
///
/// The engine and [`contract::check`](crate::contract::check) end with a
/// [`Violation`](crate::contract::Violation) if a policy breaks this:
///
/// - An ID is below the number of the machine's CPUs, or below the largest number of threads that
///   the process has had at a time if that is more.
/// - No two running threads of a process have one ID.
/// - A running thread keeps its ID until it is switched away from, until it replaces the program,
///   or until the policy reports a fence of its CPU ([`Overhead`]).
///
/// If an ID is needed and there can be none, methods return [`Impossible`]. After that, the policy
/// is not called again.
pub trait Policy: Send {
    /// Reports that the kernel switches from `prev` to `next` on `cpu`. `None` is idle or a thread
    /// of another process.
    fn switch(
        &mut self,
        _process: &Process<'_>,
        _cpu: Cpu,
        _prev: Option<Thread>,
        _next: Option<Thread>,
    ) -> Result<(), Impossible> {
        Ok(())
    }

    /// Reports that a thread that last ran on `from` is queued on `to`. It does not run yet.
    fn migrate(&mut self, _process: &Process<'_>, _thread: Thread, _from: Cpu, _to: Cpu) {}

    /// Reports that the timer tick finds `thread` running on `cpu`.
    fn tick(&mut self, _process: &Process<'_>, _cpu: Cpu, _thread: Thread) {}

    /// Reports a new thread, which `users` already includes. It has not run yet.
    fn spawn(&mut self, _process: &Process<'_>, _thread: Thread) {}

    /// Reports that a thread that runs on `cpu` ends. It is no longer a user, and will be switched
    /// away from.
    fn exit(&mut self, _process: &Process<'_>, _thread: Thread, _cpu: Cpu) {}

    /// Reports that the affinity of a thread changed.
    fn affinity(&mut self, _process: &Process<'_>, _thread: Thread) {}

    /// Reports that `thread`, which runs on `cpu`, replaces the program. It is the only thread of a
    /// new address space (R10).
    fn exec(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<(), Impossible>;

    /// Returns the ID by which `thread`, which runs on `cpu`, now selects its data.
    fn id(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<Id, Impossible>;

    /// Returns the totals of its work.
    fn work(&self) -> Work;

    /// Returns the work since the last call, and resets it. The thread of the last
    /// [`tick`](Self::tick) or [`id`](Self::id) is charged for it.
    fn take_overhead(&mut self) -> Overhead {
        Overhead::default()
    }

    /// Returns the reason if the policy itself has failed, as a program that it runs may. Its
    /// methods then return [`Impossible`] if they can.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// A function that creates a policy, for a process on a machine.
pub type Create = dyn Fn(&Topology) -> Box<dyn Policy> + Send + Sync;

/// A policy with its name.
#[derive(Clone, Copy)]
pub struct PolicySpec {
    /// The name, as on the command line and in tables.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    /// Constructor of the policy.
    pub create: &'static Create,
}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySpec").field("name", &self.name).finish_non_exhaustive()
    }
}
