//! Execution of the threads' operations.

use std::rc::Rc;

use super::index::{FIRST_PROCESS, ProcessIndex, ThreadIndex};
use super::outcome::Span;
use super::process::{ProcessState, Together, Touch};
use super::queue::MAX_WHO;
use super::simulation::{AREA_BYTES, Simulation};
use super::thread::{RunState, ThreadState, Turn};
use crate::caches::Passage;
use crate::contract::holders::expect_bound;
use crate::cost::Found;
use crate::cpu_set::CpuSet;
use crate::time::Ns;
use crate::topology::Cpu;
use crate::workload::{GroupIndex, Memory, Op, Program, Spread};

/// Maximum number of processes: Linux' default for the largest process ID.
const MAX_PROCESSES: usize = 32_768;

/// Duration of a wait while computing: far longer than any simulation, and no overflow if added to
/// a time.
const UNTIL_OPENED: Ns = Ns::MAX / 4;

/// The state of a thread after an operation.
enum Then {
    /// It continues with the next operation at once.
    GoesOn,
    /// It is busy with this operation for a time.
    IsBusy(Ns),
    /// It is busy until another thread ends this operation.
    Spins,
    /// It blocks.
    Blocks,
    /// It ends.
    Ends,
}

impl<'a> Simulation<'a> {
    /// Creates a process of the program with index `part`.
    pub(super) fn new_process(&mut self, part: usize) -> ProcessIndex {
        let topology = &self.cpus.topology;
        let policy = (self.policy.create)(topology);
        let groups = self.program.groups.len();
        self.processes.insert(ProcessState::new(part, policy, topology, groups))
    }

    /// Creates a thread that begins its group's script after a time. `near` is the CPU of the
    /// creating thread.
    pub(super) fn new_thread(
        &mut self,
        process: ProcessIndex,
        group: GroupIndex,
        affinity: Rc<CpuSet>,
        near: Option<Cpu>,
        after: Ns,
    ) {
        let first = || affinity.iter().next().unwrap_or(0);
        let cpu = near.filter(|&cpu| affinity.contains(cpu)).unwrap_or_else(first);
        let state = &mut self.processes[process];
        let number = state.join(&affinity);
        state.together(group).living += 1;
        let (policy, view) = state.parts(self.now, &self.cpus.topology);
        policy.spawn(&view, number);
        let thread = self.threads.insert(ThreadState::new(process, number, group, cpu, affinity));
        debug_assert!(thread.number() <= MAX_WHO, "programs have fewer threads");
        self.set_alarm(thread, self.now + after);
    }

    /// Marks all possible areas as written by the first CPU, as a main thread does.
    pub(super) fn pre_fault(&mut self, process: ProcessIndex) {
        let part = self.processes[process].part;
        if self.program.parts[part].memory == Memory::PreFaulted {
            let first = self.program.cpus.first().copied().unwrap_or(0);
            let seen = self.caches.seen(&self.cpus.topology, first, self.now);
            let touched = Some(Touch { cpu: first, at: self.now, seen });
            self.processes[process].prepared = touched;
        }
    }

    /// Executes operations of a CPU's thread until one takes time, blocks or ends the thread.
    pub(super) fn advance(&mut self, cpu: Cpu, thread: ThreadIndex) {
        let program: &'a Program = self.program;
        let ops = &program.group(self.threads[thread].group).ops;
        loop {
            match self.operation(cpu, thread, ops) {
                Then::GoesOn => {}
                Then::IsBusy(time) => {
                    let time = time + self.computing_after(thread, ops);
                    return self.occupy(cpu, time.max(1));
                }
                Then::Spins => return self.occupy(cpu, UNTIL_OPENED),
                Then::Blocks => {
                    self.threads[thread].state = RunState::Blocked;
                    return self.leave(cpu);
                }
                Then::Ends => return self.end_running(cpu, thread),
            }
        }
    }

    /// Returns the computing time that directly follows an operation that takes time. It needs no
    /// event of its own.
    #[inline]
    fn computing_after(&mut self, thread: ThreadIndex, ops: &[Op]) -> Ns {
        let state = &mut self.threads[thread];
        match ops.get(state.op as usize) {
            Some(&Op::Run { time, bytes }) => {
                state.op += 1;
                self.compute(thread, time, bytes)
            }
            _ => 0,
        }
    }

    /// Lets a thread compute and go through its own data. Returns the duration.
    #[inline]
    fn compute(&mut self, thread: ThreadIndex, time: Spread, bytes: u64) -> Ns {
        self.threads[thread].data = bytes;
        self.go_through_data(thread);
        time.draw(&mut self.random)
    }

    /// Lets a thread go through the data of its operation: when it begins, and when it continues
    /// after other threads ran.
    pub(super) fn go_through_data(&mut self, thread: ThreadIndex) {
        let state = &mut self.threads[thread];
        if state.data > 0 {
            let (seen, topology) = (state.data_seen, &self.cpus.topology);
            let passage = self.caches.go_through(topology, state.cpu, seen, state.data, self.now);
            state.data_seen = Some(passage.seen);
        }
    }

    #[inline]
    fn operation(&mut self, cpu: Cpu, thread: ThreadIndex, ops: &[Op]) -> Then {
        let state = &mut self.threads[thread];
        let Some(&op) = Simulation::step(state, ops) else { return Then::Ends };
        match op {
            Op::Run { time, bytes } => Then::IsBusy(self.compute(thread, time, bytes)),
            Op::Burst { times, timed } => Then::IsBusy(self.burst(cpu, thread, times, timed)),
            Op::Sleep(spread) => {
                let time = spread.draw(&mut self.random).max(1);
                self.set_alarm(thread, self.now.saturating_add(time));
                Then::Blocks
            }
            // `step` has already executed the loop operations.
            Op::Repeat { .. } | Op::Again { .. } => Then::GoesOn,
            Op::Timer { after, jitter, by_place } => self.timer(thread, after, jitter, by_place),
            Op::Barrier => self.barrier(thread, Then::Blocks),
            Op::SpinBarrier => self.barrier(thread, Then::Spins),
            Op::Turn { after, jitter } => self.turn(thread, after, jitter),
            Op::EndTurn => {
                self.end_turn(thread);
                Then::GoesOn
            }
            Op::Respawn => {
                let (process, group) = (state.process, state.group);
                let affinity = state.affinity.clone();
                self.new_thread(process, group, affinity, Some(cpu), 1);
                Then::Ends
            }
            Op::Fork { group } => {
                self.fork(cpu, thread, group);
                Then::GoesOn
            }
            Op::Exec => {
                self.exec(cpu, thread);
                Then::GoesOn
            }
            Op::Wait => Then::Blocks,
        }
    }

    /// Returns the next operation of a thread that is not the beginning or end of a loop.
    #[inline]
    fn step<'o>(state: &mut ThreadState, ops: &'o [Op]) -> Option<&'o Op> {
        loop {
            let op = ops.get(state.op as usize)?;
            state.op += 1;
            match *op {
                Op::Repeat { times, past, depth } => {
                    state.loops[depth as usize] = times;
                    if times == 0 {
                        state.op = past;
                    }
                }
                Op::Again { first, depth } => {
                    let left = &mut state.loops[depth as usize];
                    if *left != u32::MAX {
                        *left -= 1;
                    }
                    if *left > 0 {
                        state.op = first;
                    }
                }
                _ => return Some(op),
            }
        }
    }

    /// Finds the thread's ID and writes to its area. Returns the duration.
    fn burst(&mut self, cpu: Cpu, thread: ThreadIndex, times: u32, timed: bool) -> Ns {
        let state = &mut self.threads[thread];
        state.data = 0;
        let index = state.process;
        let process = &mut self.processes[index];
        let (policy, view) = process.parts(self.now, &self.cpus.topology);
        let number = state.number;
        let id = match policy.id(&view, cpu, number) {
            Ok(id) => id,
            Err(impossible) => {
                self.policy_failed(index, cpu, number, impossible);
                return 0;
            }
        };
        if let Err(breach) = expect_bound(id, process.id_bound()) {
            self.violated(cpu, number, breach);
            return 0;
        }
        let last = process.last_touch(id);
        let seen = last.map(|touch| touch.seen);
        let topology = &self.cpus.topology;
        let passage = self.caches.go_through(topology, cpu, seen, AREA_BYTES, self.now);
        let found = self.found(cpu, last, &passage);
        let process = &mut self.processes[index];
        process.touch(id, Touch { cpu, at: self.now, seen: passage.seen });
        let part = process.part;
        if index == FIRST_PROCESS {
            self.sampler.note_use(self.now, id, process.bound());
        }
        let work = self.charge(index, cpu);
        if let Err(breach) = self.processes[index].use_id(&mut self.holders, cpu, id) {
            self.violated(cpu, number, breach);
            return 0;
        }
        let prices = &self.prices[part];
        let (class, first) = prices.burst_with(&found, || passage.lost);
        let ns = first + Ns::from(times - 1) * prices.hot(&found);
        if timed {
            let outcome = &mut self.outcome.parts[part];
            let total = &mut outcome.classes[class as usize];
            total.bursts += u64::from(times);
            total.ns += ns;
            outcome.expense.timed_work_ns += work;
            if self.notes_found {
                self.outcome.found.push(found);
            }
        }
        if self.cpus[cpu].used.is_none_or(|(before, _)| before != id) {
            self.end_span(cpu);
            self.cpus[cpu].used = Some((id, self.now));
        }
        work + ns
    }

    /// Returns the state of an area for a burst on a CPU.
    fn found(&self, cpu: Cpu, last: Option<Touch>, passage: &Passage) -> Found {
        let topology = &self.cpus.topology;
        let idle = self.cpus.idle_times(cpu, last.map(|touch| touch.at));
        Found {
            brought_in: passage.brought_in,
            sibling_busy: self.cpus.is_sibling_busy(cpu),
            ..Found::new(topology, cpu, last.map(|touch| touch.cpu), idle)
        }
    }

    /// Ends the span in which the CPU's thread used its ID.
    pub(super) fn end_span(&mut self, cpu: Cpu) {
        if let Some((id, from)) = self.cpus[cpu].used.take() {
            if self.outcome.spans.len() < self.spans_wanted {
                self.outcome.spans.push(Span { cpu, id, from, to: self.now });
            }
        }
    }

    /// Copies the process, unless the number of processes has reached the kernel's default limit.
    fn fork(&mut self, cpu: Cpu, thread: ThreadIndex, group: GroupIndex) {
        if self.processes.used() < MAX_PROCESSES {
            let affinity = self.threads[thread].affinity.clone();
            let parent = self.threads[thread].process;
            let child = self.new_process(self.processes[parent].part);
            self.processes[child].bandwidth = self.processes[parent].bandwidth;
            self.new_thread(child, group, affinity, Some(cpu), 1);
        }
    }

    /// Returns the shared state of a thread's group.
    fn together(&mut self, thread: ThreadIndex) -> &mut Together {
        let state = &self.threads[thread];
        self.processes[state.process].together(state.group)
    }

    /// Lets a thread sleep until a timer expires.
    fn timer(&mut self, thread: ThreadIndex, after: Ns, jitter: Ns, by_place: bool) -> Then {
        let place = if by_place { self.place_of(thread) } else { 1 };
        if place == 0 {
            return Then::GoesOn;
        }
        let time = after.saturating_mul(place) + self.random.below(jitter + 1);
        self.set_alarm(thread, self.now.saturating_add(time.max(1)));
        Then::Blocks
    }

    /// Returns a thread's place in the order of its group. The first request shuffles the threads of
    /// the group; later ones come last.
    fn place_of(&mut self, thread: ThreadIndex) -> u64 {
        if self.together(thread).order.is_empty() {
            let mut members = self.group_of(thread);
            self.random.shuffle(&mut members);
            self.together(thread).order = members;
        }
        let order = &mut self.together(thread).order;
        let place = order.iter().position(|&other| other == thread);
        place.unwrap_or_else(|| {
            order.push(thread);
            order.len() - 1
        }) as u64
    }

    /// Lets a thread wait at the barrier of its group, in the state `waits`, or opens it.
    fn barrier(&mut self, thread: ThreadIndex, waits: Then) -> Then {
        let together = self.together(thread);
        together.at_barrier.push(thread);
        if (together.at_barrier.len() as u32) < together.living {
            return waits;
        }
        together.at_barrier.pop();
        self.open_barrier(thread);
        Then::GoesOn
    }

    /// Lets all threads that wait at the barrier of a thread's group continue.
    fn open_barrier(&mut self, thread: ThreadIndex) {
        for waiting in std::mem::take(&mut self.together(thread).at_barrier) {
            let state = &mut self.threads[waiting];
            match state.state {
                RunState::Running => {
                    let cpu = state.cpu;
                    self.occupy(cpu, 0);
                }
                RunState::Queued | RunState::Parked => state.left = 0,
                RunState::Blocked | RunState::Ended => self.set_alarm(waiting, self.now),
            }
        }
    }

    fn turn(&mut self, thread: ThreadIndex, after: Ns, jitter: Ns) -> Then {
        let state = &mut self.threads[thread];
        let before = std::mem::replace(&mut state.turn, Turn::Awaited { after, jitter });
        if before == Turn::Offered {
            state.turn = Turn::Inside;
            return Then::GoesOn;
        }
        // The thread repeats this operation when it wakes.
        state.op -= 1;
        if before == Turn::Outside {
            self.join_round(thread);
        }
        self.offer_turn(thread);
        Then::Blocks
    }

    /// Adds a thread to the round of turns. The first thread of a group begins a round of all its
    /// threads.
    fn join_round(&mut self, thread: ThreadIndex) {
        let turns = &mut self.together(thread).turns;
        if !turns.is_empty() {
            return turns.join(thread);
        }
        let members = self.group_of(thread);
        for &member in members.iter().filter(|&&member| member != thread) {
            self.threads[member].turn = Turn::Inside;
        }
        let state = &self.threads[thread];
        let together = self.processes[state.process].together(state.group);
        together.turns.begin(members, &mut self.random);
    }

    /// Schedules the wake-up of the thread whose turn it is, after the pause, if that thread waits
    /// for its turn. `thread` is any thread of the group.
    fn offer_turn(&mut self, thread: ThreadIndex) {
        let Some(current) = self.together(thread).turns.current() else { return };
        if let Turn::Awaited { after, jitter } = self.threads[current].turn {
            self.threads[current].turn = Turn::Offered;
            let pause = after + self.random.below(jitter + 1);
            self.set_alarm(current, self.now + pause.max(1));
        }
    }

    fn end_turn(&mut self, thread: ThreadIndex) {
        let turns = &mut self.together(thread).turns;
        if turns.current() == Some(thread) {
            turns.pass();
            self.offer_turn(thread);
        }
    }

    /// Returns the living threads of a thread's group.
    fn group_of(&self, thread: ThreadIndex) -> Vec<ThreadIndex> {
        let (process, group) = (self.threads[thread].process, self.threads[thread].group);
        let is_member = |&other: &ThreadIndex| {
            let other = &self.threads[other];
            other.process == process && other.group == group && other.state != RunState::Ended
        };
        self.threads.places().filter(is_member).collect()
    }

    fn exec(&mut self, cpu: Cpu, thread: ThreadIndex) {
        let index = self.threads[thread].process;
        for other in self.threads.places() {
            let state = &self.threads[other];
            if other != thread && state.process == index && state.state != RunState::Ended {
                self.end_other(other);
            }
        }
        self.account_memory(index);
        self.note_memory_lost(index);
        let (state, process) = (&self.threads[thread], &mut self.processes[index]);
        process.exec(&state.affinity);
        process.release(&mut self.holders, cpu);
        let number = state.number;
        let (policy, view) = process.parts(self.now, &self.cpus.topology);
        if let Err(impossible) = policy.exec(&view, cpu, number) {
            self.policy_failed(index, cpu, number, impossible);
        }
    }

    /// Ends a thread because another one replaces the program. The policy is notified of the
    /// replacement, not of each thread.
    fn end_other(&mut self, thread: ThreadIndex) {
        let state = &self.threads[thread];
        let (cpu, runs) = (state.cpu, state.state == RunState::Running);
        self.end(thread);
        if runs {
            self.leave(cpu);
        }
        self.threads.release(thread);
    }

    /// Removes a thread from its process. Does not stop it if it runs.
    fn end(&mut self, thread: ThreadIndex) {
        self.forget(thread);
        let process = self.threads[thread].process;
        self.processes[process].users -= 1;
        let together = self.together(thread);
        together.living -= 1;
        together.at_barrier.retain(|&other| other != thread);
        together.turns.leave(thread);
        if together.at_barrier.len() as u32 == together.living {
            self.open_barrier(thread);
        }
        self.offer_turn(thread);
    }

    /// Ends a thread that runs on a CPU, and its process if it was the last thread.
    fn end_running(&mut self, cpu: Cpu, thread: ThreadIndex) {
        self.end(thread);
        let state = &self.threads[thread];
        let process = state.process;
        let (policy, view) = self.processes[process].parts(self.now, &self.cpus.topology);
        policy.exit(&view, state.number, cpu);
        self.leave(cpu);
        self.threads.release(thread);
        self.end_process_if_over(process);
    }
}
