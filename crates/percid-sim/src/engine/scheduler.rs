//! Which thread runs where.

use std::cmp::Reverse;
use std::rc::Rc;

use super::{Event, Simulation, State};
use crate::Ns;
use crate::cpu_set::CpuSet;
use crate::policies::Thread;
use crate::topology::{Cpu, Reach};

impl Simulation<'_> {
    /// Lets a blocked thread wake at a time, and at no other.
    pub(super) fn set_alarm(&mut self, thread: u32, at: Ns) {
        self.silence(thread);
        self.expected += 1;
        let ticket = self.queue.put(at, Event::Wake(thread));
        self.threads[thread as usize].alarm = Some(ticket);
    }

    /// Whatever event was to wake a thread is void.
    pub(super) fn silence(&mut self, thread: u32) {
        if self.threads[thread as usize].alarm.take().is_some() {
            self.expected -= 1;
        }
    }

    /// A blocked thread can run again.
    pub(super) fn wake(&mut self, thread: u32) {
        if self.threads[thread as usize].state != State::Blocked {
            return;
        }
        self.outcome.scheduling.wakes += 1;
        let cpu = self.astray(thread).unwrap_or_else(|| self.place(thread));
        self.enqueue(thread, cpu);
    }

    /// Where a thread lands that the workload sends elsewhere than the rule below: on an idle CPU so far from where it
    /// ran last, any of these equally likely. None if the rule holds, or no such CPU is idle.
    fn astray(&mut self, thread: u32) -> Option<Cpu> {
        let wakes = self.program.wakes.filter(|wakes| self.now < wakes.until)?;
        let state = &self.threads[thread as usize];
        if state.op == 0 {
            return None;
        }
        let reach = wakes.reach(self.random.unit())?;
        let (last, allowed) = (state.cpu, state.affinity.clone());
        let place = self.topology.place(last);
        let near = match reach {
            Reach::Core | Reach::L3 => &self.l3s[place.l3 as usize],
            Reach::Socket => &self.sockets[place.socket as usize],
            Reach::Machine => &*allowed,
        };
        let fits = |cpu: &Cpu| {
            *cpu != last && allowed.contains(*cpu) && self.topology.reach(last, *cpu) == reach
        };
        let fitting = || self.idle.common(near).filter(fits);
        let count = fitting().count() as u64;
        let chosen = if count == 0 { 0 } else { self.random.below(count) };
        fitting().nth(chosen as usize)
    }

    /// The CPU on which a thread should run: where it ran last if that is idle, else an idle one behind the same
    /// cache, on a core that is idle as a whole if there is one, then in the same socket, then anywhere. If there is
    /// none it waits where it ran last. A new thread goes wherever there is most room.
    fn place(&self, thread: u32) -> Cpu {
        let state = &self.threads[thread as usize];
        let (last, allowed) = (state.cpu, &*state.affinity);
        let is_new = state.op == 0;
        if allowed.contains(last) && !is_new {
            if self.idle.contains(last) {
                return last;
            }
            let place = self.topology.place(last);
            let near = &self.l3s[place.l3 as usize];
            return self
                .idle_cores
                .first_in_all(near, allowed)
                .or_else(|| self.idle.first_in_all(near, allowed))
                .or_else(|| self.idle.first_in_all(&self.sockets[place.socket as usize], allowed))
                .or_else(|| self.idle.first_in_both(allowed))
                .unwrap_or(last);
        }
        let idle =
            self.idle_cores.first_in_both(allowed).or_else(|| self.idle.first_in_both(allowed));
        idle.unwrap_or_else(|| self.least_crowded(allowed))
    }

    fn least_crowded(&self, allowed: &CpuSet) -> Cpu {
        let waiting = |cpu: &Cpu| self.cpus[*cpu as usize].waiting.len();
        allowed.iter().min_by_key(waiting).unwrap_or(0)
    }

    /// Lets a thread run on a CPU, at once if that is idle.
    fn enqueue(&mut self, thread: u32, cpu: Cpu) {
        self.move_to(thread, cpu);
        self.threads[thread as usize].state = State::Queued;
        if self.idle.contains(cpu) {
            self.switch(cpu, Some(thread));
            return;
        }
        self.cpus[cpu as usize].waiting.push_back(thread);
        self.crowded.insert(cpu);
        self.waiting += 1;
    }

    /// Notes that a thread that does not run is on another CPU from now on. One that never ran has nothing to take
    /// along.
    fn move_to(&mut self, thread: u32, to: Cpu) {
        let state = &mut self.threads[thread as usize];
        let from = std::mem::replace(&mut state.cpu, to);
        if from == to || state.op == 0 {
            return;
        }
        self.outcome.scheduling.migrations += 1;
        let number = state.number;
        let process = &mut self.processes[state.process as usize];
        let (policy, view) = process.parts(self.now, &self.topology);
        policy.migrate(&view, number, from, to);
    }

    /// Takes a waiting thread out of its CPU's queue.
    fn dequeue(&mut self, thread: u32) {
        let cpu = self.threads[thread as usize].cpu;
        let waiting = &mut self.cpus[cpu as usize].waiting;
        let place = waiting.iter().position(|&other| other == thread);
        if let Some(place) = place {
            waiting.remove(place);
            self.waiting -= 1;
            if waiting.is_empty() {
                self.crowded.remove(cpu);
            }
        }
    }

    /// The first thread that waits for this CPU; if there is none, one that waits for another CPU, from near to far.
    fn next_for(&mut self, cpu: Cpu) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let thread = match self.cpus[cpu as usize].waiting.front() {
            Some(&thread) => thread,
            None => self.waiting_elsewhere(cpu)?,
        };
        self.dequeue(thread);
        self.move_to(thread, cpu);
        Some(thread)
    }

    fn waiting_elsewhere(&self, cpu: Cpu) -> Option<u32> {
        let place = self.topology.place(cpu);
        let near =
            [&self.l3s[place.l3 as usize], &self.sockets[place.socket as usize], &self.crowded];
        let mut crowded = near.iter().flat_map(|near| self.crowded.common(near));
        crowded.find_map(|from| self.first_waiting(from, |allowed| allowed.contains(cpu)))
    }

    /// The first thread that waits for a CPU and whose affinity is as wanted.
    fn first_waiting(&self, cpu: Cpu, is_wanted: impl Fn(&CpuSet) -> bool) -> Option<u32> {
        let mut waiting = self.cpus[cpu as usize].waiting.iter().copied();
        waiting.find(|&thread| is_wanted(&self.threads[thread as usize].affinity))
    }

    /// Lets a CPU run another thread, or nothing.
    pub(super) fn switch(&mut self, cpu: Cpu, next: Option<u32>) {
        let prev = std::mem::replace(&mut self.cpus[cpu as usize].runs, next);
        if prev.is_some() {
            self.note_run(cpu);
        }
        self.end_span(cpu);
        self.outcome.scheduling.switches += 1;
        self.note_idleness(cpu, prev.is_some(), next.is_some());
        self.tell_policies(cpu, prev, next);
        if let Some(thread) = next {
            let state = &mut self.threads[thread as usize];
            state.state = State::Running;
            let left = std::mem::take(&mut state.left);
            let now = self.now;
            let ours = &mut self.cpus[cpu as usize];
            ours.since = now;
            ours.next_tick = (now / self.tick + 1) * self.tick;
            self.occupy(cpu, left);
        }
    }

    /// Counts the time for which a CPU ran its thread.
    pub(super) fn note_run(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu as usize];
        self.outcome.expense.run_ns += self.now - state.since;
        state.since = self.now;
        state.stopped = Some(self.now);
    }

    fn note_idleness(&mut self, cpu: Cpu, was_busy: bool, is_busy: bool) {
        if was_busy == is_busy {
            return;
        }
        let core = self.topology.place(cpu).core as usize;
        if is_busy {
            self.idle.remove(cpu);
            if self.cores[core].is_idle() {
                self.core_cpus[core].iter().for_each(|&cpu| self.idle_cores.remove(cpu));
            }
            self.cores[core].enter(self.now);
        } else {
            self.idle.insert(cpu);
            self.cores[core].leave(self.now);
            if self.cores[core].is_idle() {
                self.core_cpus[core].iter().for_each(|&cpu| self.idle_cores.insert(cpu));
            }
        }
    }

    /// Tells the processes of both threads, once if it is the same one.
    fn tell_policies(&mut self, cpu: Cpu, prev: Option<u32>, next: Option<u32>) {
        let of = |thread: Option<u32>| {
            let state = &self.threads[thread? as usize];
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

    fn tell(&mut self, process: u32, cpu: Cpu, prev: Option<Thread>, next: Option<Thread>) {
        let process = &mut self.processes[process as usize];
        process.running[cpu as usize] = next;
        let (policy, view) = process.parts(self.now, &self.topology);
        policy.switch(&view, cpu, prev, next);
    }

    /// A CPU is busy for so long, or until its next tick.
    pub(super) fn occupy(&mut self, cpu: Cpu, time: Ns) {
        let state = &mut self.cpus[cpu as usize];
        state.ends = self.now + time;
        state.ticket = self.queue.put(state.ends.min(state.next_tick), Event::Cpu(cpu));
    }

    /// What a CPU does ends, or its timer ticks, or both.
    pub(super) fn cpu_event(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu as usize];
        let Some(thread) = state.runs else { return };
        let ticks = state.next_tick == self.now;
        if ticks {
            state.next_tick += self.tick;
            self.tick(cpu, thread);
        }
        let state = &self.cpus[cpu as usize];
        let left = state.ends - self.now;
        if ticks && self.slice_is_over(cpu) {
            self.preempt(cpu);
        } else if left > 0 {
            self.occupy(cpu, left);
        } else {
            self.advance(cpu, thread);
        }
    }

    fn tick(&mut self, cpu: Cpu, thread: u32) {
        self.outcome.scheduling.ticks += 1;
        let state = &self.threads[thread as usize];
        let process = &mut self.processes[state.process as usize];
        let (policy, view) = process.parts(self.now, &self.topology);
        policy.tick(&view, cpu, state.number);
        let process = state.process;
        let held_up = self.collect(process, cpu);
        self.cpus[cpu as usize].ends += held_up;
        if self.waiting > 0 {
            self.hand_on(cpu);
            self.balance(cpu);
        }
    }

    /// Hands a thread that waits for this CPU to an idle one: idle CPUs do not tick, so nobody else would see that
    /// there is room since it began to wait.
    fn hand_on(&mut self, cpu: Cpu) {
        let found = self.first_waiting(cpu, |allowed| self.idle.first_in_both(allowed).is_some());
        if let Some(thread) = found {
            self.move_to_idle(thread);
        }
    }

    /// Moves a waiting thread to an idle CPU, if it may use one.
    fn move_to_idle(&mut self, thread: u32) {
        if let Some(to) = self.idle.first_in_both(&self.threads[thread as usize].affinity) {
            self.dequeue(thread);
            self.enqueue(thread, to);
        }
    }

    /// Takes a waiting thread from another CPU where several wait: behind the same cache at each tick, in the same
    /// socket at each fourth, on the whole machine at each sixteenth.
    fn balance(&mut self, cpu: Cpu) {
        let place = self.topology.place(cpu);
        let ticks = self.now / self.tick;
        let near = match () {
            () if ticks.is_multiple_of(16) => &self.crowded,
            () if ticks.is_multiple_of(4) => &self.sockets[place.socket as usize],
            () => &self.l3s[place.l3 as usize],
        };
        let waiting = |cpu: Cpu| self.cpus[cpu as usize].waiting.len();
        let crowded = self.crowded.common(near);
        let Some(from) = crowded.max_by_key(|&other| (waiting(other), Reverse(other))) else {
            return;
        };
        if waiting(from) < waiting(cpu) + 2 {
            return;
        }
        if let Some(thread) = self.first_waiting(from, |allowed| allowed.contains(cpu)) {
            self.dequeue(thread);
            self.enqueue(thread, cpu);
        }
    }

    fn slice_is_over(&self, cpu: Cpu) -> bool {
        let state = &self.cpus[cpu as usize];
        !state.waiting.is_empty() && self.now - state.since >= self.slice
    }

    /// Lets the thread of a CPU wait, behind those that wait already.
    fn preempt(&mut self, cpu: Cpu) {
        if let Some(thread) = self.interrupt(cpu) {
            self.threads[thread as usize].state = State::Queued;
            self.cpus[cpu as usize].waiting.push_back(thread);
            self.crowded.insert(cpu);
            self.waiting += 1;
        }
        let next = self.next_for(cpu);
        self.switch(cpu, next);
    }

    /// Notes what is left of what the thread of a CPU does.
    fn interrupt(&mut self, cpu: Cpu) -> Option<u32> {
        let state = &self.cpus[cpu as usize];
        let thread = state.runs?;
        self.threads[thread as usize].left = state.ends.saturating_sub(self.now);
        Some(thread)
    }

    /// The thread of a CPU does not run any more; another one does, if one waits.
    pub(super) fn leave(&mut self, cpu: Cpu) {
        let next = self.next_for(cpu);
        self.switch(cpu, next);
    }

    /// Confines a thread, and moves it if it is elsewhere.
    pub(super) fn set_affinity(&mut self, thread: u32, affinity: Rc<CpuSet>) {
        let state = &mut self.threads[thread as usize];
        if state.state == State::Ended {
            return;
        }
        let (number, cpu, was) = (state.number, state.cpu, state.state);
        state.affinity = affinity.clone();
        let process = &mut self.processes[state.process as usize];
        process.thread_allowed[number as usize] = affinity.len();
        process.allow(&affinity);
        let (policy, view) = process.parts(self.now, &self.topology);
        policy.affinity(&view, number);
        if affinity.contains(cpu) {
            if was == State::Queued {
                self.move_to_idle(thread);
            }
            return;
        }
        match was {
            State::Queued => self.dequeue(thread),
            State::Running => {
                self.interrupt(cpu);
                self.leave(cpu);
            }
            State::Blocked | State::Ended => return,
        }
        let to = self.place(thread);
        self.enqueue(thread, to);
    }

    /// Takes a thread that ends out of everything. Whether it runs stays as it is.
    pub(super) fn forget(&mut self, thread: u32) {
        self.silence(thread);
        if self.threads[thread as usize].state == State::Queued {
            self.dequeue(thread);
        }
        self.threads[thread as usize].state = State::Ended;
    }
}
