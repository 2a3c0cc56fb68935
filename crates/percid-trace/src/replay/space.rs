//! An address space of a recorded schedule: a policy's view of it, and its figures that do not
//! depend on the policy.

use std::rc::Rc;

use percid_sim::cpu_set::CpuSet;
use percid_sim::policies::{self, Thread};
use percid_sim::topology::{Cpu, Topology};
use percid_sim::{MS, Ns};
use serde::Serialize;

use crate::event::Tid;

/// An address space, numbered from 0 in the order in which the trace shows them.
pub type SpaceNumber = u32;

/// Figures of an address space that do not depend on the policy. A process has a new address space
/// after each `exec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SpaceSummary {
    /// The process (`getpid`).
    pub process: Tid,
    /// The name of its first thread at the end, before it began another program.
    pub name: String,
    /// `true` if the trace does not show that its threads belong together, and this is only a
    /// guess.
    pub guessed: bool,
    /// Time at which the trace first shows it, in nanoseconds since the first event.
    pub begin_ns: Ns,
    /// Time at which it ended; the end of the trace if it did not.
    pub end_ns: Ns,
    /// Threads over all its life.
    pub threads: u32,
    /// The most threads that it had at once.
    pub most_threads: u32,
    /// The most threads that ran at once: no policy can do with fewer IDs.
    pub most_running: u32,
    /// Time that its threads ran, all together, in nanoseconds.
    pub run_ns: Ns,
    /// Number of times that a CPU began to run one of its threads.
    pub turns: u64,
    /// Turns on another CPU than the thread's turn before.
    pub moves: Moves,
    /// The CPUs that any of its threads was allowed so far.
    pub allowed_cpus: u32,
}

/// Moves of threads or memory, by distance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// Moves to another hardware thread of the same core.
    pub same_core: u64,
    /// Moves to another core behind the same last-level cache.
    pub same_l3: u64,
    /// Moves to another last-level cache of the same node.
    pub same_node: u64,
    /// Moves to another node.
    pub other_node: u64,
}

impl Moves {
    /// Counts one; staying counts nowhere.
    pub fn count(&mut self, topology: &Topology, from: Cpu, to: Cpu) {
        if from == to {
            return;
        }
        let (a, b) = (topology.place(from), topology.place(to));
        let counter = match () {
            () if a.core == b.core => &mut self.same_core,
            () if a.l3 == b.l3 => &mut self.same_l3,
            () if a.node == b.node => &mut self.same_node,
            () => &mut self.other_node,
        };
        *counter += 1;
    }

    /// Counts all that another one has counted.
    pub fn add(&mut self, other: &Moves) {
        self.same_core += other.same_core;
        self.same_l3 += other.same_l3;
        self.same_node += other.same_node;
        self.other_node += other.other_node;
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.same_core + self.same_l3 + self.across_l3s()
    }

    /// All that left the cache.
    pub fn across_l3s(&self) -> u64 {
        self.same_node + self.other_node
    }
}

/// The thread that runs on each CPU, lent to the address spaces in which any runs: there can be
/// many more spaces than CPUs.
#[derive(Debug)]
pub(super) struct RunningRows {
    /// The row of a space in which no thread runs: no thread for any CPU.
    pub(super) idle_row: Vec<Option<Thread>>,
    free: Vec<Vec<Option<Thread>>>,
}

impl RunningRows {
    pub(super) fn new(cpus: u32) -> RunningRows {
        RunningRows { idle_row: vec![None; cpus as usize], free: Vec::new() }
    }

    fn lend(&mut self) -> Vec<Option<Thread>> {
        self.free.pop().unwrap_or_else(|| self.idle_row.clone())
    }

    /// Takes back a row in which no thread runs any more.
    fn take_back(&mut self, row: Vec<Option<Thread>>) {
        self.free.push(row);
    }
}

/// An address space while the trace is followed.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) summary: SpaceSummary,
    /// The living threads.
    pub(super) users: u32,
    /// Number of CPUs that each of its threads may use, including ended ones.
    pub(super) thread_allowed: Vec<u32>,
    /// The kernel's number of each of its threads, including ended ones.
    pub(super) tids: Vec<Tid>,
    /// The thread that runs on each CPU; empty while none does.
    running: Vec<Option<Thread>>,
    /// The CPUs that run any of its threads.
    occupied: u32,
    /// Threads that run and have not begun to end.
    now_running: u32,
    /// The CPUs whose thread has begun to end: few, if any.
    ending: Vec<Cpu>,
    /// Shared by all threads that were allowed the same CPUs: there can be a million spaces.
    allowed: Option<Rc<CpuSet>>,
    /// The name before the last one, and until when.
    former_name: Option<(Ns, String)>,
}

/// Time by which a new program's name may precede the program in the trace, in nanoseconds: the
/// kernel renames the thread before it reads the program, perhaps from a disk.
const RENAMED_AHEAD: Ns = 100 * MS;

impl Space {
    pub(super) fn new(process: Tid, now: Ns) -> Space {
        Space {
            summary: SpaceSummary {
                process,
                begin_ns: now,
                end_ns: now,
                ..SpaceSummary::default()
            },
            users: 0,
            thread_allowed: Vec::new(),
            tids: Vec::new(),
            running: Vec::new(),
            occupied: 0,
            now_running: 0,
            ending: Vec::new(),
            allowed: None,
            former_name: None,
        }
    }

    /// Its first thread is called otherwise from now on.
    pub(super) fn rename(&mut self, now: Ns, name: &str) {
        let before = std::mem::replace(&mut self.summary.name, name.to_owned());
        self.former_name = Some((now, before));
    }

    /// It makes room for another program. A name that it has only just been given is that
    /// program's.
    pub(super) fn make_room(&mut self, now: Ns) {
        if let Some((until, name)) = self.former_name.take() {
            if now - until <= RENAMED_AHEAD && !name.is_empty() {
                self.summary.name = name;
            }
        }
    }

    /// Counts a new thread that may run on these CPUs, and gives it its number.
    pub(super) fn join(&mut self, tid: Tid, affinity: &Rc<CpuSet>) -> Thread {
        self.users += 1;
        self.summary.threads += 1;
        self.summary.most_threads = self.summary.most_threads.max(self.users);
        self.thread_allowed.push(affinity.len());
        self.tids.push(tid);
        self.allow(affinity);
        self.thread_allowed.len() as Thread - 1
    }

    /// Lets a thread run on other CPUs.
    pub(super) fn confine(&mut self, thread: Thread, affinity: &Rc<CpuSet>) {
        self.thread_allowed[thread as usize] = affinity.len();
        self.allow(affinity);
    }

    fn allow(&mut self, affinity: &Rc<CpuSet>) {
        let allowed = self.allowed.get_or_insert_with(|| affinity.clone());
        if !Rc::ptr_eq(allowed, affinity) {
            Rc::make_mut(allowed).add_all(affinity);
        }
        self.summary.allowed_cpus = allowed.len();
    }

    /// A thread runs on a CPU from now on, or none does.
    pub(super) fn runs(&mut self, cpu: Cpu, thread: Option<Thread>, rows: &mut RunningRows) {
        if self.running.is_empty() {
            self.running = rows.lend();
        }
        let before = std::mem::replace(&mut self.running[cpu as usize], thread);
        self.occupied += u32::from(thread.is_some());
        self.occupied -= u32::from(before.is_some());
        self.now_running += u32::from(thread.is_some());
        self.now_running -= u32::from(before.is_some() && !self.ending.contains(&cpu));
        self.ending.retain(|&ending| ending != cpu);
        self.summary.most_running = self.summary.most_running.max(self.now_running);
        if self.occupied == 0 {
            rows.take_back(std::mem::take(&mut self.running));
        }
    }

    /// The thread that runs on this CPU begins to end. From now on it has no memory any more.
    pub(super) fn loses(&mut self, cpu: Cpu) {
        self.users -= 1;
        self.now_running -= 1;
        self.ending.push(cpu);
    }

    /// Returns `true` if all its threads have ended and none runs.
    pub(super) fn is_over(&self) -> bool {
        self.users == 0 && self.occupied == 0
    }

    /// Returns the view of the process that a policy gets.
    pub(super) fn view<'a>(
        &'a self,
        now: Ns,
        topology: &'a Topology,
        idle_row: &'a [Option<Thread>],
    ) -> policies::Process<'a> {
        policies::Process {
            now,
            topology,
            users: self.users,
            nr_cpus_allowed: self.summary.allowed_cpus,
            thread_allowed: &self.thread_allowed,
            running: if self.running.is_empty() { idle_row } else { &self.running },
        }
    }
}
