//! A process in a test: it does what the test says, and tells the policy as a scheduler would.

use super::{Entry, Id, Impossible, Policy, Process, Thread, Work};
use crate::time::{MS, Ns};
use crate::topology::{Cpu, Place, Topology};

/// A process with thread 0, which has run nowhere yet, on a machine with one cache. Everything is
/// allowed.
pub(super) struct Scenario {
    policy: Box<dyn Policy>,
    topology: Topology,
    now: Ns,
    users: u32,
    nr_cpus_allowed: u32,
    thread_allowed: Vec<u32>,
    running: Vec<Option<Thread>>,
    /// For each thread the CPU on which it ran last.
    last_cpu: Vec<Option<Cpu>>,
}

/// What tests tell a policy, but for those that are about the impossible.
const POSSIBLE: &str = "something that a kernel does";

/// Calls a method of the policy with the process's present state.
macro_rules! tell {
    ($s:ident, $method:ident $(, $argument:expr)*) => {{
        let process = Process {
            now: $s.now,
            topology: &$s.topology,
            users: $s.users,
            nr_cpus_allowed: $s.nr_cpus_allowed,
            thread_allowed: &$s.thread_allowed,
            running: &$s.running,
        };
        $s.policy.$method(&process $(, $argument)*)
    }};
}

impl Scenario {
    pub(super) fn new(entry: &Entry, cpus: u32) -> Scenario {
        Scenario::with_policy(cpus, entry.create)
    }

    pub(super) fn with_policy(cpus: u32, create: fn(&Topology) -> Box<dyn Policy>) -> Scenario {
        let place = |core| Place { core, l3: 0, socket: 0, node: 0 };
        let topology = Topology::new((0..cpus).map(place).collect());
        Scenario {
            policy: create(&topology),
            topology,
            now: 0,
            users: 1,
            nr_cpus_allowed: cpus,
            thread_allowed: vec![cpus],
            running: vec![None; cpus as usize],
            last_cpu: vec![None],
        }
    }

    pub(super) fn advance_ms(&mut self, ms: u64) {
        self.now += ms * MS;
    }

    /// Sets the size of the union of the allowed CPUs. To be called before any event.
    pub(super) fn allow(&mut self, cpus: u32) {
        self.nr_cpus_allowed = cpus;
        self.thread_allowed.fill(cpus);
    }

    /// From now on `thread` may use this number of CPUs, which changes nothing about the union.
    pub(super) fn restrict(&mut self, thread: Thread, cpus: u32) {
        self.thread_allowed[thread as usize] = cpus;
        tell!(self, affinity, thread);
    }

    /// Starts this number of threads.
    pub(super) fn spawn(&mut self, threads: u32) {
        for _ in 0..threads {
            let thread = self.last_cpu.len() as Thread;
            self.users += 1;
            self.last_cpu.push(None);
            self.thread_allowed.push(self.nr_cpus_allowed);
            tell!(self, spawn, thread);
        }
    }

    /// Lets `thread` run on `cpu` and returns its ID. It is taken from where it runs, and the
    /// thread that runs on `cpu` is switched away from.
    pub(super) fn run(&mut self, cpu: Cpu, thread: Thread) -> Id {
        self.try_run(cpu, thread).expect(POSSIBLE)
    }

    /// The same where the policy may find that this cannot be.
    pub(super) fn try_run(&mut self, cpu: Cpu, thread: Thread) -> Result<Id, Impossible> {
        match self.last_cpu[thread as usize] {
            Some(last) if last != cpu => {
                if self.running[last as usize] == Some(thread) {
                    self.switch(last, None)?;
                }
                self.migrate(thread, cpu);
            }
            _ => {}
        }
        self.switch(cpu, Some(thread))?;
        self.try_id(cpu)
    }

    /// Queues `thread`, which does not run, on `to`.
    pub(super) fn migrate(&mut self, thread: Thread, to: Cpu) {
        if let Some(from) = self.last_cpu[thread as usize].replace(to).filter(|&from| from != to) {
            tell!(self, migrate, thread, from, to);
        }
    }

    pub(super) fn idle(&mut self, cpu: Cpu) {
        self.switch(cpu, None).expect(POSSIBLE);
    }

    fn switch(&mut self, cpu: Cpu, next: Option<Thread>) -> Result<(), Impossible> {
        let prev = std::mem::replace(&mut self.running[cpu as usize], next);
        if let Some(next) = next {
            self.last_cpu[next as usize] = Some(cpu);
        }
        if prev != next {
            tell!(self, switch, cpu, prev, next)?;
        }
        Ok(())
    }

    /// A timer tick on `cpu`.
    pub(super) fn tick(&mut self, cpu: Cpu) {
        if let Some(thread) = self.running[cpu as usize] {
            tell!(self, tick, cpu, thread);
        }
    }

    /// The thread that runs on `cpu` ends.
    pub(super) fn exit(&mut self, cpu: Cpu) {
        let thread = self.running[cpu as usize].expect("a thread to end");
        self.users -= 1;
        tell!(self, exit, thread, cpu);
        self.idle(cpu);
    }

    /// The same, but it is preempted before its last step.
    pub(super) fn exit_and_run_once_more(&mut self, cpu: Cpu) {
        let thread = self.running[cpu as usize].expect("a thread to end");
        self.users -= 1;
        tell!(self, exit, thread, cpu);
        self.idle(cpu);
        self.switch(cpu, Some(thread)).expect(POSSIBLE);
        self.idle(cpu);
    }

    /// The thread that runs on `cpu` replaces the program; all others are gone before.
    pub(super) fn exec(&mut self, cpu: Cpu) {
        for other in (0..self.running.len() as Cpu).filter(|&other| other != cpu) {
            if self.running[other as usize].is_some() {
                self.exit(other);
            }
        }
        let thread = self.running[cpu as usize].expect("a thread to call exec");
        self.users = 1;
        tell!(self, exec, cpu, thread).expect(POSSIBLE);
    }

    /// The ID of the thread that runs on `cpu`.
    pub(super) fn id(&mut self, cpu: Cpu) -> Id {
        self.try_id(cpu).expect(POSSIBLE)
    }

    fn try_id(&mut self, cpu: Cpu) -> Result<Id, Impossible> {
        let thread = self.running[cpu as usize].expect("a running thread");
        tell!(self, id, cpu, thread)
    }

    pub(super) fn work(&self) -> Work {
        self.policy.work()
    }

    pub(super) fn running(&self) -> &[Option<Thread>] {
        &self.running
    }

    pub(super) fn users(&self) -> u32 {
        self.users
    }
}
