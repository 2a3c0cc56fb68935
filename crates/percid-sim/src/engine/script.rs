//! What threads do: operation after operation.

use std::rc::Rc;

use super::cpu_set::CpuSet;
use super::process::{ProcessState, Touch, Turns};
use super::queue::MAX_WHO;
use super::{Event, Simulation, Span, State, ThreadState};
use crate::Ns;
use crate::topology::Cpu;
use crate::workload::{MAX_DEPTH, Memory, Op};

/// What becomes of a thread after an operation.
enum Then {
    /// It does the next one at once.
    GoesOn,
    /// It is busy with this one for so long.
    IsBusy(Ns),
    /// It blocks.
    Blocks,
    /// It ends.
    Ends,
}

impl Simulation<'_> {
    pub(super) fn new_process(&mut self) -> u32 {
        if let Some(process) = self.free_processes.pop() {
            return process;
        }
        let policy = (self.policy.create)(&self.topology);
        self.processes.push(ProcessState::new(policy, &self.topology, self.program.groups.len()));
        self.processes.len() as u32 - 1
    }

    /// Makes a thread that begins its group's script at a time. `near` is the CPU of whoever makes it.
    pub(super) fn new_thread(
        &mut self,
        process: u32,
        group: u32,
        affinity: Rc<CpuSet>,
        near: Option<Cpu>,
        start: Ns,
    ) {
        let first = || affinity.iter().next().unwrap_or(0);
        let cpu = near.filter(|&cpu| affinity.contains(cpu)).unwrap_or_else(first);
        let state = &mut self.processes[process as usize];
        let number = state.join(&affinity);
        let (policy, view) = state.parts(self.now, &self.topology);
        policy.spawn(&view, number);
        let state = ThreadState {
            process,
            number,
            group,
            state: State::Blocked,
            cpu,
            affinity,
            op: 0,
            loops: [0; MAX_DEPTH],
            left: 0,
            has_turn: false,
        };
        let thread = match self.free_threads.pop() {
            Some(place) => {
                self.threads[place as usize] = state;
                place
            }
            None => {
                self.threads.push(state);
                self.threads.len() as u32 - 1
            }
        };
        assert!(thread <= MAX_WHO, "programs have fewer threads");
        self.queue.put(start.max(self.now), Event::Wake(thread));
    }

    /// Writes to all areas there can be from the first CPU, as a main thread does.
    pub(super) fn pre_fault(&mut self, process: u32) {
        if self.program.memory == Memory::PreFaulted {
            let first = self.program.cpus.first().copied().unwrap_or(0);
            let touched = Some(Touch { cpu: first, at: self.now });
            self.processes[process as usize].prepared = touched;
        }
    }

    /// Lets the thread of a CPU do operations until one takes time.
    pub(super) fn advance(&mut self, cpu: Cpu, thread: u32) {
        loop {
            match self.operation(cpu, thread) {
                Then::GoesOn => {}
                Then::IsBusy(time) => {
                    let time = time + self.computing_after(thread);
                    return self.occupy(cpu, time.max(1));
                }
                Then::Blocks => {
                    self.threads[thread as usize].state = State::Blocked;
                    return self.leave(cpu);
                }
                Then::Ends => {
                    self.end(cpu, thread);
                    return self.leave_for_good(cpu, thread);
                }
            }
        }
    }

    /// Computing needs no event of its own behind another operation that takes time.
    fn computing_after(&mut self, thread: u32) -> Ns {
        let state = &mut self.threads[thread as usize];
        let group = &self.program.groups[state.group as usize];
        match group.ops.get(state.op as usize) {
            Some(Op::Run(spread)) => {
                state.op += 1;
                spread.draw(&mut self.random)
            }
            _ => 0,
        }
    }

    fn operation(&mut self, cpu: Cpu, thread: u32) -> Then {
        let state = &mut self.threads[thread as usize];
        let group = &self.program.groups[state.group as usize];
        let Some(&op) = group.ops.get(state.op as usize) else { return Then::Ends };
        state.op += 1;
        match op {
            Op::Run(spread) => Then::IsBusy(spread.draw(&mut self.random)),
            Op::Burst { times, timed } => Then::IsBusy(self.burst(cpu, thread, times, timed)),
            Op::Sleep(spread) => {
                let time = spread.draw(&mut self.random).max(1);
                self.queue.put(self.now + time, Event::Wake(thread));
                Then::Blocks
            }
            Op::Repeat { times, past, depth } => {
                state.loops[depth as usize] = times;
                if times == 0 {
                    state.op = past;
                }
                Then::GoesOn
            }
            Op::Again { first, depth } => {
                let left = &mut state.loops[depth as usize];
                if *left != u32::MAX {
                    *left -= 1;
                }
                if *left > 0 {
                    state.op = first;
                }
                Then::GoesOn
            }
            Op::Barrier => self.barrier(thread),
            Op::Turn { after, jitter } => self.turn(thread, after, jitter),
            Op::EndTurn => self.end_turn(thread),
            Op::Respawn => {
                let (process, group) = (state.process, state.group);
                let affinity = state.affinity.clone();
                self.new_thread(process, group, affinity, Some(cpu), self.now);
                Then::Ends
            }
            Op::Fork { group } => {
                let affinity = state.affinity.clone();
                let child = self.new_process();
                self.new_thread(child, group, affinity, Some(cpu), self.now);
                Then::GoesOn
            }
            Op::Exec => self.exec(cpu, thread),
            Op::Wait => Then::Blocks,
        }
    }

    /// Writes to the area of the thread's ID. Answers how long that takes.
    fn burst(&mut self, cpu: Cpu, thread: u32, times: u32, timed: bool) -> Ns {
        let state = &self.threads[thread as usize];
        let process = &mut self.processes[state.process as usize];
        let (policy, view) = process.parts(self.now, &self.topology);
        let id = policy.id(&view, cpu, state.number);
        let last = process.touch(id, cpu, self.now);
        let core = &self.cores[self.topology.place(cpu).core as usize];
        let touched_since = last.is_some_and(|touch| touch.at >= core.awake_since);
        let idle = if touched_since { 0 } else { core.lasted };
        let last = last.map(|touch| touch.cpu);
        let (class, first) = self.prices.burst(&self.topology, cpu, last, idle);
        let ns = first + Ns::from(times - 1) * self.prices.hot();
        if timed {
            let tally = &mut self.outcome.classes[class as usize];
            tally.bursts += u64::from(times);
            tally.ns += ns;
        }
        let used = &mut self.cpus[cpu as usize].used;
        if used.is_none_or(|(before, _)| before != id) {
            self.end_span(cpu);
            self.cpus[cpu as usize].used = Some((id, self.now));
        }
        ns
    }

    /// The thread of a CPU does not use its ID any more.
    pub(super) fn end_span(&mut self, cpu: Cpu) {
        let used = self.cpus[cpu as usize].used.take();
        if let Some((id, from)) = used {
            if self.outcome.spans.len() < self.spans_wanted {
                self.outcome.spans.push(Span { cpu, id, from, to: self.now });
            }
        }
    }

    fn barrier(&mut self, thread: u32) -> Then {
        let state = &self.threads[thread as usize];
        let group = state.group as usize;
        let together = &mut self.processes[state.process as usize].together[group];
        together.at_barrier.push(thread);
        if together.at_barrier.len() < self.program.groups[group].count as usize {
            return Then::Blocks;
        }
        for other in std::mem::take(&mut together.at_barrier) {
            if other != thread {
                self.queue.put(self.now, Event::Wake(other));
            }
        }
        Then::GoesOn
    }

    fn turn(&mut self, thread: u32, after: Ns, jitter: Ns) -> Then {
        let state = &mut self.threads[thread as usize];
        if std::mem::take(&mut state.has_turn) {
            return Then::GoesOn;
        }
        // It comes back to this operation when it wakes.
        state.op -= 1;
        let (process, group) = (state.process, state.group);
        if self.turns(process, group).is_empty() {
            let members = self.members(process, group);
            self.processes[process as usize].together[group as usize]
                .turns
                .begin(members, &mut self.random);
        }
        if self.turns(process, group).current() == Some(thread) {
            self.offer(thread, after, jitter);
        }
        Then::Blocks
    }

    fn turns(&self, process: u32, group: u32) -> &Turns {
        &self.processes[process as usize].together[group as usize].turns
    }

    /// Lets the turn of a thread come after a pause.
    fn offer(&mut self, thread: u32, after: Ns, jitter: Ns) {
        self.threads[thread as usize].has_turn = true;
        let pause = after + self.random.below(jitter + 1);
        self.queue.put(self.now + pause.max(1), Event::Wake(thread));
    }

    fn end_turn(&mut self, thread: u32) -> Then {
        let state = &self.threads[thread as usize];
        let (process, group) = (state.process, state.group as usize);
        let turns = &mut self.processes[process as usize].together[group].turns;
        turns.pass();
        if let Some(next) = turns.current() {
            self.offer_to_waiting(next);
        }
        Then::GoesOn
    }

    /// Offers the turn to a thread if it has come to the point where it waits for it.
    fn offer_to_waiting(&mut self, thread: u32) {
        let state = &self.threads[thread as usize];
        let op = self.program.groups[state.group as usize].ops.get(state.op as usize);
        if let (State::Blocked, Some(&Op::Turn { after, jitter })) = (state.state, op) {
            self.offer(thread, after, jitter);
        }
    }

    fn members(&self, process: u32, group: u32) -> Vec<u32> {
        let all = self.threads.iter().enumerate();
        let ours = all.filter(|(_, thread)| {
            thread.process == process && thread.group == group && thread.state != State::Ended
        });
        ours.map(|(number, _)| number as u32).collect()
    }

    fn exec(&mut self, cpu: Cpu, thread: u32) -> Then {
        let state = &self.threads[thread as usize];
        let (process, number, affinity) = (state.process, state.number, state.affinity.clone());
        for other in 0..self.threads.len() as u32 {
            let state = &self.threads[other as usize];
            if other != thread && state.process == process && state.state != State::Ended {
                self.end_other(other);
            }
        }
        let process = &mut self.processes[process as usize];
        process.exec(&affinity);
        let (policy, view) = process.parts(self.now, &self.topology);
        policy.exec(&view, cpu, number);
        Then::GoesOn
    }

    /// Ends a thread that is not the one that asks for it. An event may still name it, so its place stays.
    fn end_other(&mut self, thread: u32) {
        let state = &self.threads[thread as usize];
        let (cpu, runs) = (state.cpu, state.state == State::Running);
        self.end(cpu, thread);
        if runs {
            self.leave(cpu);
        }
    }

    fn end(&mut self, cpu: Cpu, thread: u32) {
        let state = &self.threads[thread as usize];
        let (process, number, group) = (state.process, state.number, state.group as usize);
        let process = &mut self.processes[process as usize];
        process.users -= 1;
        process.together[group].turns.leave(thread);
        let (policy, view) = process.parts(self.now, &self.topology);
        policy.exit(&view, number, cpu);
        self.forget(thread);
    }

    /// Switches away from a thread that ended by itself. The process ends with its last thread.
    fn leave_for_good(&mut self, cpu: Cpu, thread: u32) {
        self.leave(cpu);
        self.free_threads.push(thread);
        let process = self.threads[thread as usize].process;
        if self.processes[process as usize].users == 0 {
            self.bury(process);
            self.free_processes.push(process);
        }
    }
}
