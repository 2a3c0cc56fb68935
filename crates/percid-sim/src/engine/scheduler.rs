//! The scheduler: assignment of threads to CPUs.

use std::rc::Rc;

use super::index::{ProcessIndex, ThreadIndex};
use super::queue::Event;
use super::simulation::Simulation;
use super::thread::RunState;
use crate::cpu_set::CpuSet;
use crate::policies::Thread;
use crate::time::Ns;
use crate::topology::Cpu;

impl Simulation<'_> {
    /// Sets the wake-up time of a blocked thread, in place of any earlier one.
    pub(super) fn set_alarm(&mut self, thread: ThreadIndex, at: Ns) {
        self.cancel_alarm(thread);
        self.expected += 1;
        self.threads[thread].alarm = Some(self.queue.put(at, Event::Wake(thread)));
    }

    /// Voids the event that would wake a thread.
    pub(super) fn cancel_alarm(&mut self, thread: ThreadIndex) {
        if self.threads[thread].alarm.take().is_some() {
            self.expected -= 1;
        }
    }

    /// Makes a blocked thread runnable.
    pub(super) fn wake(&mut self, thread: ThreadIndex) {
        if self.threads[thread].state != RunState::Blocked {
            return;
        }
        self.outcome.scheduling.wakes += 1;
        let cpu = self.stray(thread).unwrap_or_else(|| self.place(thread));
        self.enqueue(thread, cpu);
    }

    /// Returns a random idle CPU for a wake-up that the workload sends astray. The CPU is at a
    /// certain distance from the thread's last CPU, and all such CPUs are equally likely. Returns
    /// `None` if this wake does not go astray, or if no such CPU is idle.
    fn stray(&mut self, thread: ThreadIndex) -> Option<Cpu> {
        let wakes = self.program.wakes.filter(|wakes| self.now < wakes.until)?;
        let state = &self.threads[thread];
        if state.is_new() {
            return None;
        }
        let reach = wakes.reach(self.random.unit())?;
        let fitting = || self.cpus.idle_at(state.cpu, reach, &state.affinity);
        let count = fitting().count() as u64;
        let chosen = if count == 0 { 0 } else { self.random.below(count) };
        fitting().nth(chosen as usize)
    }

    /// Returns the CPU that the scheduler's rule chooses for a thread.
    fn place(&self, thread: ThreadIndex) -> Cpu {
        let state = &self.threads[thread];
        if state.affinity.contains(state.cpu) && !state.is_new() {
            self.cpus.near(state.cpu, &state.affinity)
        } else {
            self.cpus.anywhere(&state.affinity)
        }
    }

    /// Runs a thread on a CPU if that is idle, otherwise queues it.
    fn enqueue(&mut self, thread: ThreadIndex, cpu: Cpu) {
        self.move_to(thread, cpu);
        self.threads[thread].state = RunState::Queued;
        if self.is_throttled(thread, cpu) {
            self.park(thread, cpu);
        } else if self.cpus.is_idle(cpu) {
            if self.has_quota(thread, cpu) {
                self.switch(cpu, Some(thread));
            } else {
                self.park_first(thread, cpu);
            }
        } else {
            self.cpus.push_waiting(cpu, thread);
        }
    }

    /// Records that a thread that does not run is now on another CPU. A thread that never ran does
    /// not count as migrated.
    fn move_to(&mut self, thread: ThreadIndex, to: Cpu) {
        let state = &mut self.threads[thread];
        let from = std::mem::replace(&mut state.cpu, to);
        if from == to || state.is_new() {
            return;
        }
        self.outcome.scheduling.migrations += 1;
        let (policy, view) = self.processes[state.process].parts(self.now, &self.cpus.topology);
        policy.migrate(&view, state.number, from, to);
    }

    /// Removes a waiting thread from its CPU's queue.
    fn dequeue(&mut self, thread: ThreadIndex) {
        self.cpus.remove_waiting(self.threads[thread].cpu, thread);
    }

    /// Removes the next thread for a CPU from its queue and returns it.
    fn next_for(&mut self, cpu: Cpu) -> Option<ThreadIndex> {
        loop {
            let thread = self.cpus.next_waiting(cpu, |thread| self.may_run(thread, cpu))?;
            self.dequeue(thread);
            self.move_to(thread, cpu);
            if self.has_quota(thread, cpu) {
                return Some(thread);
            }
            self.park_first(thread, cpu);
        }
    }

    /// Returns `true` if a waiting thread may move to a CPU.
    fn may_run(&self, thread: ThreadIndex, cpu: Cpu) -> bool {
        self.threads[thread].affinity.contains(cpu) && !self.is_throttled(thread, cpu)
    }

    /// Switches a CPU to another thread, or to idle.
    fn switch(&mut self, cpu: Cpu, next: Option<ThreadIndex>) {
        let prev = std::mem::replace(&mut self.cpus[cpu].runs, next);
        if let Some(thread) = prev {
            self.note_run(cpu, thread);
        }
        self.end_span(cpu);
        self.outcome.scheduling.switches += 1;
        match (prev, next) {
            (None, Some(_)) => {
                self.sampler.note_busy(self.now, self.cpus[cpu].stopped);
                self.cpus.set_busy(cpu, self.now);
            }
            (Some(_), None) => {
                self.sampler.note_idle(self.now);
                self.cpus.set_idle(cpu, self.now);
            }
            _ => {}
        }
        self.tell_policies(cpu, prev, next);
        if let Some(thread) = next {
            let state = &mut self.threads[thread];
            state.state = RunState::Running;
            let left = std::mem::take(&mut state.left);
            if left > 0 {
                self.go_through_data(thread);
            }
            let state = &mut self.cpus[cpu];
            state.since = self.now;
            state.next_tick = (self.now / self.tick + 1) * self.tick;
            self.occupy(cpu, left);
        }
    }

    /// Counts the time for which a CPU ran a thread.
    pub(super) fn note_run(&mut self, cpu: Cpu, thread: ThreadIndex) {
        let part = self.processes[self.threads[thread].process].part;
        let state = &mut self.cpus[cpu];
        self.outcome.parts[part].expense.run_ns += self.now - state.since;
        state.since = self.now;
        state.stopped = Some(self.now);
    }

    /// Notifies the policies of both threads' processes, with one call if it is the same process.
    fn tell_policies(&mut self, cpu: Cpu, prev: Option<ThreadIndex>, next: Option<ThreadIndex>) {
        let of = |thread: Option<ThreadIndex>| {
            let state = &self.threads[thread?];
            Some((state.process, state.number))
        };
        match (of(prev), of(next)) {
            (Some((process, prev)), Some((same, next))) if process == same => {
                self.tell(process, cpu, Some(prev), Some(next));
            }
            (prev, next) => {
                if let Some((process, number)) = prev {
                    self.tell(process, cpu, Some(number), None);
                }
                if let Some((process, number)) = next {
                    self.tell(process, cpu, None, Some(number));
                }
            }
        }
    }

    fn tell(
        &mut self,
        process: ProcessIndex,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) {
        let state = &mut self.processes[process];
        state.set_running(&mut self.holders, cpu, next);
        let (policy, view) = state.parts(self.now, &self.cpus.topology);
        if let Err(impossible) = policy.switch(&view, cpu, prev, next) {
            let thread = next.or(prev).unwrap_or_default();
            self.policy_failed(process, cpu, thread, impossible);
        }
    }

    /// Keeps a CPU busy for a time, or until its next tick.
    pub(super) fn occupy(&mut self, cpu: Cpu, time: Ns) {
        let state = &mut self.cpus[cpu];
        state.ends = self.now + time;
        state.ticket = self.queue.put(state.ends.min(state.next_tick), Event::Cpu(cpu));
    }

    /// Handles the end of an operation of a CPU's thread, a timer tick, or both.
    pub(super) fn cpu_event(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu];
        let Some(thread) = state.runs else { return };
        let ticks = state.next_tick == self.now;
        if ticks {
            state.next_tick += self.tick;
            self.tick(cpu, thread);
        }
        let left = self.cpus[cpu].ends - self.now;
        if ticks && !self.pay(thread, cpu) {
            self.stop_for_quota(cpu, thread);
        } else if ticks && self.slice_is_over(cpu) {
            self.preempt(cpu);
        } else if left > 0 {
            self.occupy(cpu, left);
        } else {
            self.advance(cpu, thread);
        }
    }

    fn tick(&mut self, cpu: Cpu, thread: ThreadIndex) {
        self.outcome.scheduling.ticks += 1;
        let state = &self.threads[thread];
        let process = state.process;
        let (policy, view) = self.processes[process].parts(self.now, &self.cpus.topology);
        policy.tick(&view, cpu, state.number);
        let held_up = self.charge(process, cpu);
        self.cpus[cpu].ends += held_up;
        if self.cpus.any_waiting() {
            self.hand_on(cpu);
            self.balance(cpu);
        }
    }

    /// Moves a thread that waits for this CPU to an idle one. Idle CPUs do not tick, so they would
    /// not detect it.
    fn hand_on(&mut self, cpu: Cpu) {
        let affinity = |thread: ThreadIndex| &*self.threads[thread].affinity;
        let found = self.cpus.first_to_hand_on(cpu, affinity);
        if let Some(thread) = found {
            self.move_to_idle(thread);
        }
    }

    /// Moves a waiting thread to an idle CPU, if it may use one.
    fn move_to_idle(&mut self, thread: ThreadIndex) {
        let to = self.cpus.first_idle(&self.threads[thread].affinity);
        if let Some(to) = to.filter(|&to| !self.is_throttled(thread, to)) {
            self.dequeue(thread);
            self.enqueue(thread, to);
        }
    }

    /// Takes a waiting thread from a CPU where several wait.
    fn balance(&mut self, cpu: Cpu) {
        let Some(from) = self.cpus.to_relieve(cpu, self.now / self.tick) else { return };
        let fits = |thread| self.may_run(thread, cpu);
        if let Some(thread) = self.cpus.first_waiting(from, fits) {
            self.dequeue(thread);
            self.enqueue(thread, cpu);
        }
    }

    fn slice_is_over(&self, cpu: Cpu) -> bool {
        self.cpus.has_waiting(cpu) && self.now - self.cpus[cpu].since >= self.slice
    }

    /// Puts the running thread of a CPU at the end of its queue.
    fn preempt(&mut self, cpu: Cpu) {
        if let Some(thread) = self.interrupt(cpu) {
            self.threads[thread].state = RunState::Queued;
            self.cpus.push_waiting(cpu, thread);
        }
        self.leave(cpu);
    }

    /// Records the remaining time of the operation of a CPU's thread, and returns the thread.
    pub(super) fn interrupt(&mut self, cpu: Cpu) -> Option<ThreadIndex> {
        let state = &self.cpus[cpu];
        let thread = state.runs?;
        self.threads[thread].left = state.ends.saturating_sub(self.now);
        Some(thread)
    }

    /// Stops the thread of a CPU, and runs the next waiting one if there is one.
    pub(super) fn leave(&mut self, cpu: Cpu) {
        if let Some(thread) = self.cpus[cpu].runs {
            self.pay(thread, cpu);
            self.give_back(thread, cpu);
        }
        let next = self.next_for(cpu);
        self.switch(cpu, next);
    }

    /// Runs a waiting thread on an idle CPU, if there is one.
    pub(super) fn resume(&mut self, cpu: Cpu) {
        if let Some(thread) = self.next_for(cpu) {
            self.switch(cpu, Some(thread));
        }
    }

    /// Sets the affinity of a thread, and moves the thread if its CPU is no longer allowed.
    pub(super) fn set_affinity(&mut self, thread: ThreadIndex, affinity: Rc<CpuSet>) {
        let state = &mut self.threads[thread];
        if state.state == RunState::Ended {
            return;
        }
        let (cpu, was, is_inside) = (state.cpu, state.state, affinity.contains(state.cpu));
        let process = &mut self.processes[state.process];
        process.confine(state.number, &affinity);
        state.affinity = affinity;
        let (policy, view) = process.parts(self.now, &self.cpus.topology);
        policy.affinity(&view, state.number);
        match was {
            RunState::Queued if is_inside => return self.move_to_idle(thread),
            RunState::Queued => self.dequeue(thread),
            RunState::Parked if is_inside => return,
            RunState::Parked => self.unpark(thread),
            RunState::Running if !is_inside => {
                self.interrupt(cpu);
                self.leave(cpu);
            }
            RunState::Running | RunState::Blocked | RunState::Ended => return,
        }
        let to = self.place(thread);
        self.enqueue(thread, to);
    }

    /// Removes an ending thread from all queues. Does not stop it if it runs.
    pub(super) fn forget(&mut self, thread: ThreadIndex) {
        self.cancel_alarm(thread);
        match self.threads[thread].state {
            RunState::Queued => self.dequeue(thread),
            RunState::Parked => self.unpark(thread),
            RunState::Blocked | RunState::Running | RunState::Ended => {}
        }
        self.threads[thread].state = RunState::Ended;
    }
}
