//! A process whose policy is called as a scheduler would, step by step, with every rule checked.

use super::holders::{Holders, TakenIds, expect_bound, expect_work, id_bound};
use super::schedule::{Schedule, Step};
use super::violation::{Breach, Violation};
use crate::policies::{Impossible, Policy, PolicySpec, Process, Thread};
use crate::time::{Ns, US};
use crate::topology::{Cpu, Topology};

/// State of a thread.
#[derive(Debug)]
struct ThreadState {
    /// The CPU that runs it, or ran it last.
    last_cpu: Option<Cpu>,
    /// Number of CPUs that it may use: the first ones of the machine.
    allowed: u32,
    is_alive: bool,
}

/// A process in a schedule.
pub(super) struct Driver<'a> {
    entry: &'a PolicySpec,
    policy: Box<dyn Policy>,
    topology: &'a Topology,
    now: Ns,
    users: u32,
    id_bound: u32,
    nr_cpus_allowed: u32,
    thread_allowed: Vec<u32>,
    threads: Vec<ThreadState>,
    running: Vec<Option<Thread>>,
    holders: Holders,
    taken: TakenIds,
}

/// Calls a method of the policy with the process's current state.
macro_rules! tell {
    ($driver:ident, $method:ident $(, $argument:expr)*) => {{
        let process = Process {
            now: $driver.now,
            topology: $driver.topology,
            users: $driver.users,
            nr_cpus_allowed: $driver.nr_cpus_allowed,
            thread_allowed: &$driver.thread_allowed,
            running: &$driver.running,
        };
        $driver.policy.$method(&process $(, $argument)*)
    }};
}

/// The result of a step that is not a violation: `true` if the step was possible.
type Stepped = Result<bool, Violation>;

impl<'a> Driver<'a> {
    /// Creates the process of a schedule, with thread 0, which has not run.
    pub(super) fn new(
        entry: &'a PolicySpec,
        topology: &'a Topology,
        schedule: &Schedule,
    ) -> Driver<'a> {
        let cpus = topology.cpus();
        let mut driver = Driver {
            entry,
            policy: (entry.create)(topology),
            topology,
            now: 0,
            users: 0,
            id_bound: cpus,
            nr_cpus_allowed: 0,
            thread_allowed: Vec::new(),
            threads: Vec::new(),
            running: vec![None; cpus as usize],
            holders: Holders::new(cpus),
            taken: TakenIds::default(),
        };
        driver.spawn(schedule.allowed.clamp(1, cpus));
        driver
    }

    /// Executes a step. Returns `false`, and does nothing, if no scheduler could execute it.
    pub(super) fn step(&mut self, step: Step) -> Stepped {
        match step {
            Step::Spawn => self.spawn(self.nr_cpus_allowed),
            Step::Run { thread, cpu } if self.may_run(thread, cpu) => self.run(thread, cpu)?,
            Step::Idle { cpu } if self.runs(cpu).is_some() => self.switch(cpu, None)?,
            Step::Use { cpu } => return self.use_id(cpu),
            Step::Tick { cpu } => return self.tick(cpu),
            Step::Advance { us } => self.now = self.now.saturating_add(Ns::from(us) * US),
            Step::Exit { cpu } => return self.exit(cpu),
            Step::Exec { cpu } => return self.exec(cpu),
            Step::Confine { thread, cpus } => return self.confine(thread, cpus),
            Step::Run { .. } | Step::Idle { .. } => return Ok(false),
        }
        Ok(true)
    }

    fn runs(&self, cpu: Cpu) -> Option<Thread> {
        self.running.get(cpu as usize).copied().flatten()
    }

    fn is_alive(&self, thread: Thread) -> bool {
        self.threads.get(thread as usize).is_some_and(|state| state.is_alive)
    }

    fn may_run(&self, thread: Thread, cpu: Cpu) -> bool {
        self.is_alive(thread)
            && cpu < self.threads[thread as usize].allowed
            && self.runs(cpu) != Some(thread)
    }

    fn spawn(&mut self, allowed: u32) {
        let thread = self.threads.len() as Thread;
        self.users += 1;
        self.id_bound = id_bound(self.id_bound, self.users);
        self.nr_cpus_allowed = self.nr_cpus_allowed.max(allowed);
        self.thread_allowed.push(allowed);
        self.threads.push(ThreadState { last_cpu: None, allowed, is_alive: true });
        tell!(self, spawn, thread);
    }

    /// Runs a thread on a CPU: first stops it where it runs, and moves it.
    fn run(&mut self, thread: Thread, cpu: Cpu) -> Result<(), Violation> {
        if let Some(last) = self.threads[thread as usize].last_cpu.filter(|&last| last != cpu) {
            if self.runs(last) == Some(thread) {
                self.switch(last, None)?;
            }
            tell!(self, migrate, thread, last, cpu);
        }
        self.threads[thread as usize].last_cpu = Some(cpu);
        self.switch(cpu, Some(thread))
    }

    fn switch(&mut self, cpu: Cpu, next: Option<Thread>) -> Result<(), Violation> {
        let prev = std::mem::replace(&mut self.running[cpu as usize], next);
        self.holders.release(&mut self.taken, cpu);
        let told = tell!(self, switch, cpu, prev, next);
        self.answered(cpu, next.or(prev).unwrap_or_default(), told)
    }

    fn use_id(&mut self, cpu: Cpu) -> Stepped {
        let Some(thread) = self.runs(cpu) else { return Ok(false) };
        let told = tell!(self, id, cpu, thread);
        let id = self.answered(cpu, thread, told)?;
        self.charge(cpu, thread)?;
        let kept = expect_bound(id, self.id_bound)
            .and_then(|()| self.holders.use_id(&mut self.taken, &self.running, cpu, id));
        kept.map(|()| true).map_err(|breach| self.violation(cpu, thread, breach))
    }

    fn tick(&mut self, cpu: Cpu) -> Stepped {
        let Some(thread) = self.runs(cpu) else { return Ok(false) };
        tell!(self, tick, cpu, thread);
        self.charge(cpu, thread)?;
        Ok(true)
    }

    /// Takes the work of the policy, with its fences.
    fn charge(&mut self, cpu: Cpu, thread: Thread) -> Result<(), Violation> {
        let overhead = self.policy.take_overhead();
        expect_work(&overhead, self.topology.cpus())
            .map_err(|breach| self.violation(cpu, thread, breach))?;
        self.holders.fence(&mut self.taken, &self.running, cpu, &overhead);
        Ok(())
    }

    fn exit(&mut self, cpu: Cpu) -> Stepped {
        let Some(thread) = self.runs(cpu).filter(|_| self.users > 1) else { return Ok(false) };
        self.users -= 1;
        self.threads[thread as usize].is_alive = false;
        tell!(self, exit, thread, cpu);
        self.switch(cpu, None)?;
        Ok(true)
    }

    /// Replaces the program. The other threads end before, and the policy is told so only by
    /// switches.
    fn exec(&mut self, cpu: Cpu) -> Stepped {
        let Some(thread) = self.runs(cpu) else { return Ok(false) };
        self.threads.iter_mut().for_each(|state| state.is_alive = false);
        self.threads[thread as usize].is_alive = true;
        self.users = 1;
        for other in (0..self.topology.cpus()).filter(|&other| other != cpu) {
            if self.runs(other).is_some() {
                self.switch(other, None)?;
            }
        }
        self.nr_cpus_allowed = self.thread_allowed[thread as usize];
        self.holders.release(&mut self.taken, cpu);
        let told = tell!(self, exec, cpu, thread);
        self.answered(cpu, thread, told)?;
        Ok(true)
    }

    /// Restricts a thread to the first CPUs. If it runs elsewhere, it moves to CPU 0's queue.
    fn confine(&mut self, thread: Thread, cpus: u32) -> Stepped {
        let cpus = cpus.clamp(1, self.topology.cpus());
        if !self.is_alive(thread) {
            return Ok(false);
        }
        self.threads[thread as usize].allowed = cpus;
        self.thread_allowed[thread as usize] = cpus;
        self.nr_cpus_allowed = self.nr_cpus_allowed.max(cpus);
        tell!(self, affinity, thread);
        let last = self.threads[thread as usize].last_cpu;
        if let Some(last) = last.filter(|&last| last >= cpus && self.runs(last) == Some(thread)) {
            self.switch(last, None)?;
            tell!(self, migrate, thread, last, 0);
            self.threads[thread as usize].last_cpu = Some(0);
        }
        Ok(true)
    }

    fn answered<T>(
        &mut self,
        cpu: Cpu,
        thread: Thread,
        told: Result<T, Impossible>,
    ) -> Result<T, Violation> {
        told.map_err(|impossible| {
            let why = self.policy.failure().unwrap_or_else(|| impossible.to_string());
            let why = format!("{why}, for thread {thread} on CPU {cpu}");
            self.violation(cpu, thread, Breach::Failed { why })
        })
    }

    /// Returns the violation if the policy has failed in a method that returns no error.
    pub(super) fn failure(&self) -> Option<Violation> {
        self.policy.failure().map(|why| self.violation(0, 0, Breach::Failed { why }))
    }

    fn violation(&self, cpu: Cpu, thread: Thread, breach: Breach) -> Violation {
        Violation { policy: self.entry.name, at: self.now, cpu, thread, breach }
    }
}
