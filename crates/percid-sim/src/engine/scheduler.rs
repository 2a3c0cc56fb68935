//! Which thread runs where.

use std::rc::Rc;

use super::index::{ProcessIndex, ThreadIndex};
use super::process::POSSIBLE;
use super::queue::Event;
use super::simulation::Simulation;
use super::thread::State;
use crate::cpu_set::CpuSet;
use crate::policies::Thread;
use crate::time::Ns;
use crate::topology::Cpu;

impl Simulation<'_> {
    /// Lets a blocked thread wake at a time, and at no other.
    pub(super) fn set_alarm(&mut self, thread: ThreadIndex, at: Ns) {
        self.cancel_alarm(thread);
        self.expected += 1;
        self.threads[thread].alarm = Some(self.queue.put(at, Event::Wake(thread)));
    }

    /// Voids the event that was to wake a thread.
    pub(super) fn cancel_alarm(&mut self, thread: ThreadIndex) {
        if self.threads[thread].alarm.take().is_some() {
            self.expected -= 1;
        }
    }

    /// A blocked thread can run again.
    pub(super) fn wake(&mut self, thread: ThreadIndex) {
        if self.threads[thread].state != State::Blocked {
            return;
        }
        self.outcome.scheduling.wakes += 1;
        let cpu = self.stray(thread).unwrap_or_else(|| self.place(thread));
        self.enqueue(thread, cpu);
    }

    /// The CPU on which a wake lands that the workload sends astray: an idle one at a certain
    /// distance from where the thread ran last, any of these equally likely. None if this wake does
    /// not go astray, or no such CPU is idle.
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

    /// The CPU on which a thread should run by the scheduler's rule.
    fn place(&self, thread: ThreadIndex) -> Cpu {
        let state = &self.threads[thread];
        if state.affinity.contains(state.cpu) && !state.is_new() {
            self.cpus.near(state.cpu, &state.affinity)
        } else {
            self.cpus.anywhere(&state.affinity)
        }
    }

    /// Lets a thread run on a CPU, at once if that is idle.
    fn enqueue(&mut self, thread: ThreadIndex, cpu: Cpu) {
        self.move_to(thread, cpu);
        self.threads[thread].state = State::Queued;
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

    /// Notes that a thread that does not run is on another CPU from now on. A thread that never ran
    /// has nothing to take along.
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

    /// Takes a waiting thread out of its CPU's queue.
    fn dequeue(&mut self, thread: ThreadIndex) {
        self.cpus.remove_waiting(self.threads[thread].cpu, thread);
    }

    /// Takes the thread that a CPU runs next out of its queue.
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

    /// Whether a waiting thread may be taken to a CPU.
    fn may_run(&self, thread: ThreadIndex, cpu: Cpu) -> bool {
        self.threads[thread].affinity.contains(cpu) && !self.is_throttled(thread, cpu)
    }

    /// Lets a CPU run another thread, or nothing.
    fn switch(&mut self, cpu: Cpu, next: Option<ThreadIndex>) {
        let prev = std::mem::replace(&mut self.cpus[cpu].runs, next);
        if let Some(thread) = prev {
            self.note_run(cpu, thread);
        }
        self.end_span(cpu);
        self.outcome.scheduling.switches += 1;
        match (prev, next) {
            (None, Some(_)) => self.cpus.set_busy(cpu, self.now),
            (Some(_), None) => self.cpus.set_idle(cpu, self.now),
            _ => {}
        }
        self.tell_policies(cpu, prev, next);
        if let Some(thread) = next {
            let state = &mut self.threads[thread];
            state.state = State::Running;
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

    /// Tells the processes of both threads, once if it is the same process.
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
        let process = &mut self.processes[process];
        process.set_running(cpu, next);
        let (policy, view) = process.parts(self.now, &self.cpus.topology);
        policy.switch(&view, cpu, prev, next).expect(POSSIBLE);
    }

    /// Keeps a CPU busy for a time, or until its next tick.
    pub(super) fn occupy(&mut self, cpu: Cpu, time: Ns) {
        let state = &mut self.cpus[cpu];
        state.ends = self.now + time;
        state.ticket = self.queue.put(state.ends.min(state.next_tick), Event::Cpu(cpu));
    }

    /// The operation of a CPU's thread ends, or its timer ticks, or both.
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

    /// Hands a thread that waits for this CPU to an idle one: idle CPUs do not tick, and would not
    /// notice that it waits.
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

    /// Lets the thread of a CPU wait, behind those that wait already.
    fn preempt(&mut self, cpu: Cpu) {
        if let Some(thread) = self.interrupt(cpu) {
            self.threads[thread].state = State::Queued;
            self.cpus.push_waiting(cpu, thread);
        }
        self.leave(cpu);
    }

    /// Notes what is left of the operation of a CPU's thread.
    pub(super) fn interrupt(&mut self, cpu: Cpu) -> Option<ThreadIndex> {
        let state = &self.cpus[cpu];
        let thread = state.runs?;
        self.threads[thread].left = state.ends.saturating_sub(self.now);
        Some(thread)
    }

    /// Ends the turn of a CPU's thread. Another one runs if one waits.
    pub(super) fn leave(&mut self, cpu: Cpu) {
        if let Some(thread) = self.cpus[cpu].runs {
            self.pay(thread, cpu);
            self.give_back(thread, cpu);
        }
        let next = self.next_for(cpu);
        self.switch(cpu, next);
    }

    /// Lets an idle CPU run a thread that waits for it, if one does.
    pub(super) fn resume(&mut self, cpu: Cpu) {
        if let Some(thread) = self.next_for(cpu) {
            self.switch(cpu, Some(thread));
        }
    }

    /// Confines a thread, and moves it if it is elsewhere.
    pub(super) fn set_affinity(&mut self, thread: ThreadIndex, affinity: Rc<CpuSet>) {
        let state = &mut self.threads[thread];
        if state.state == State::Ended {
            return;
        }
        let (cpu, was, is_inside) = (state.cpu, state.state, affinity.contains(state.cpu));
        let process = &mut self.processes[state.process];
        process.confine(state.number, &affinity);
        state.affinity = affinity;
        let (policy, view) = process.parts(self.now, &self.cpus.topology);
        policy.affinity(&view, state.number);
        match was {
            State::Queued if is_inside => return self.move_to_idle(thread),
            State::Queued => self.dequeue(thread),
            State::Parked if is_inside => return,
            State::Parked => self.unpark(thread),
            State::Running if !is_inside => {
                self.interrupt(cpu);
                self.leave(cpu);
            }
            State::Running | State::Blocked | State::Ended => return,
        }
        let to = self.place(thread);
        self.enqueue(thread, to);
    }

    /// Takes a thread that ends out of everything. Whether it runs stays as it is.
    pub(super) fn forget(&mut self, thread: ThreadIndex) {
        self.cancel_alarm(thread);
        match self.threads[thread].state {
            State::Queued => self.dequeue(thread),
            State::Parked => self.unpark(thread),
            State::Blocked | State::Running | State::Ended => {}
        }
        self.threads[thread].state = State::Ended;
    }
}
