//! A process in a test, which reports the test's actions to the policy as a scheduler would.

use super::impossible::Impossible;
use super::policy::{Create, Id, Policy, PolicySpec, Process, Thread, Work};
use crate::time::{MS, Ns};
use crate::topology::{Cpu, Place, Topology};

/// A process with thread 0, which has not run yet, on a machine with one cache. All CPUs are
/// allowed.
pub(super) struct Scenario {
    policy: Box<dyn Policy>,
    topology: Topology,
    now: Ns,
    users: u32,
    nr_cpus_allowed: u32,
    thread_allowed: Vec<u32>,
    running: Vec<Option<Thread>>,
    /// The CPU on which each thread last ran.
    last_cpu: Vec<Option<Cpu>>,
}

/// Message if a policy rejects an event; tests of impossible events do not use it.
const POSSIBLE: &str = "something that a kernel does";

/// Calls a method of the policy with the process's current state.
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
    pub(super) fn new(entry: &PolicySpec, cpus: u32) -> Scenario {
        Scenario::with_policy(cpus, entry.create)
    }

    pub(super) fn with_policy(cpus: u32, create: &Create) -> Scenario {
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

    /// Sets the size of the union of the allowed CPUs. Must be called before any event.
    pub(super) fn allow(&mut self, cpus: u32) {
        self.nr_cpus_allowed = cpus;
        self.thread_allowed.fill(cpus);
    }

    /// Restricts `thread` to this number of CPUs; the union stays unchanged.
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

    /// Runs `thread` on `cpu` and returns its ID. First stops it on the CPU where it runs, and
    /// switches away from the thread that runs on `cpu`.
    pub(super) fn run(&mut self, cpu: Cpu, thread: Thread) -> Id {
        self.try_run(cpu, thread).expect(POSSIBLE)
    }

    /// Runs `thread` like `run`, but returns an error if the policy finds this impossible.
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

    /// Queues `thread`, which must not be running, on `to`.
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

    /// Ticks the timer on `cpu`.
    pub(super) fn tick(&mut self, cpu: Cpu) {
        if let Some(thread) = self.running[cpu as usize] {
            tell!(self, tick, cpu, thread);
        }
    }

    /// Ends the thread that runs on `cpu`.
    pub(super) fn exit(&mut self, cpu: Cpu) {
        let thread = self.running[cpu as usize].expect("a thread to end");
        self.users -= 1;
        tell!(self, exit, thread, cpu);
        self.idle(cpu);
    }

    /// Ends the thread that runs on `cpu`, but preempts it before its last step.
    pub(super) fn exit_and_run_once_more(&mut self, cpu: Cpu) {
        let thread = self.running[cpu as usize].expect("a thread to end");
        self.users -= 1;
        tell!(self, exit, thread, cpu);
        self.idle(cpu);
        self.switch(cpu, Some(thread)).expect(POSSIBLE);
        self.idle(cpu);
    }

    /// Replaces the program from the thread that runs on `cpu`; all others end before.
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

    /// Returns the ID of the thread that runs on `cpu`.
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
