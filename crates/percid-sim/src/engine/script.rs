//! What threads do: operation after operation.

use std::rc::Rc;

use super::process::{ProcessState, Touch};
use super::queue::MAX_WHO;
use super::thread::Turn;
use super::{Simulation, Span, State, ThreadState};
use crate::Ns;
use crate::cpu_set::CpuSet;
use crate::topology::Cpu;
use crate::workload::{MAX_DEPTH, Memory, Op};

/// How many processes there can be: Linux' default for the largest process ID.
const MAX_PROCESSES: usize = 32_768;

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

    /// Makes a thread that begins its group's script after a time. `near` is the CPU of whoever makes it.
    pub(super) fn new_thread(
        &mut self,
        process: u32,
        group: u32,
        affinity: Rc<CpuSet>,
        near: Option<Cpu>,
        after: Ns,
    ) {
        let first = || affinity.iter().next().unwrap_or(0);
        let cpu = near.filter(|&cpu| affinity.contains(cpu)).unwrap_or_else(first);
        let state = &mut self.processes[process as usize];
        let number = state.join(&affinity);
        state.together[group as usize].living += 1;
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
            alarm: None,
            turn: Turn::Outside,
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
        debug_assert!(thread <= MAX_WHO, "programs have fewer threads");
        self.set_alarm(thread, self.now + after);
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
                Then::Ends => return self.end_running(cpu, thread),
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
                self.set_alarm(thread, self.now.saturating_add(time));
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
                self.new_thread(process, group, affinity, Some(cpu), 1);
                Then::Ends
            }
            Op::Fork { group } => self.fork(cpu, thread, group),
            Op::Exec => self.exec(cpu, thread),
            Op::Wait => Then::Blocks,
        }
    }

    /// Finds the thread's ID and writes to its area. Answers how long that takes.
    fn burst(&mut self, cpu: Cpu, thread: u32, times: u32, timed: bool) -> Ns {
        let state = &self.threads[thread as usize];
        let number = state.process;
        let process = &mut self.processes[number as usize];
        let (policy, view) = process.parts(self.now, &self.topology);
        let id = policy.id(&view, cpu, state.number);
        let last = process.touch(id, cpu, self.now);
        let bound = process.bound();
        if number == 0 {
            self.note_use(id, bound);
        }
        let work = self.collect(number, cpu);
        let core = &self.cores[self.topology.place(cpu).core as usize];
        let idle = last.map_or(core.last(), |touch| core.longest_since(touch.at));
        let last = last.map(|touch| touch.cpu);
        let (class, first) = self.prices.burst(&self.topology, cpu, last, idle);
        let ns = first + Ns::from(times - 1) * self.prices.hot();
        if timed {
            let tally = &mut self.outcome.classes[class as usize];
            tally.bursts += u64::from(times);
            tally.ns += ns;
            self.outcome.expense.timed_work_ns += work;
        }
        let used = &mut self.cpus[cpu as usize].used;
        if used.is_none_or(|(before, _)| before != id) {
            self.end_span(cpu);
            self.cpus[cpu as usize].used = Some((id, self.now));
        }
        work + ns
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

    /// Copies the process, unless there are as many as a kernel has by default.
    fn fork(&mut self, cpu: Cpu, thread: u32, group: u32) -> Then {
        let living = self.processes.len() - self.free_processes.len();
        if living < MAX_PROCESSES {
            let affinity = self.threads[thread as usize].affinity.clone();
            let child = self.new_process();
            self.new_thread(child, group, affinity, Some(cpu), 1);
        }
        Then::GoesOn
    }

    fn barrier(&mut self, thread: u32) -> Then {
        let state = &self.threads[thread as usize];
        let (process, group) = (state.process, state.group);
        let together = &mut self.processes[process as usize].together[group as usize];
        together.at_barrier.push(thread);
        if (together.at_barrier.len() as u32) < together.living {
            return Then::Blocks;
        }
        together.at_barrier.pop();
        self.open_barrier(process, group);
        Then::GoesOn
    }

    /// Lets all who wait at the barrier of a group go on.
    fn open_barrier(&mut self, process: u32, group: u32) {
        let together = &mut self.processes[process as usize].together[group as usize];
        for thread in std::mem::take(&mut together.at_barrier) {
            self.set_alarm(thread, self.now);
        }
    }

    fn turn(&mut self, thread: u32, after: Ns, jitter: Ns) -> Then {
        let state = &mut self.threads[thread as usize];
        let before = std::mem::replace(&mut state.turn, Turn::Awaited { after, jitter });
        if before == Turn::Offered {
            state.turn = Turn::Inside;
            return Then::GoesOn;
        }
        // It comes back to this operation when it wakes.
        state.op -= 1;
        let (process, group) = (state.process, state.group);
        if before == Turn::Outside {
            self.join_round(process, group, thread);
        }
        self.offer_turn(process, group);
        Then::Blocks
    }

    /// Lets a thread take turns; with whoever lives, if it is the first one.
    fn join_round(&mut self, process: u32, group: u32, thread: u32) {
        let members = self.members(process, group);
        let turns = &mut self.processes[process as usize].together[group as usize].turns;
        if !turns.is_empty() {
            return turns.join(thread);
        }
        turns.begin(members.clone(), &mut self.random);
        for member in members.into_iter().filter(|&member| member != thread) {
            self.threads[member as usize].turn = Turn::Inside;
        }
    }

    /// If whoever's turn it is waits for it, lets it come after the pause.
    fn offer_turn(&mut self, process: u32, group: u32) {
        let turns = &self.processes[process as usize].together[group as usize].turns;
        let Some(thread) = turns.current() else { return };
        if let Turn::Awaited { after, jitter } = self.threads[thread as usize].turn {
            self.threads[thread as usize].turn = Turn::Offered;
            let pause = after + self.random.below(jitter + 1);
            self.set_alarm(thread, self.now + pause.max(1));
        }
    }

    fn end_turn(&mut self, thread: u32) -> Then {
        let state = &self.threads[thread as usize];
        let (process, group) = (state.process, state.group);
        let turns = &mut self.processes[process as usize].together[group as usize].turns;
        if turns.current() == Some(thread) {
            turns.pass();
            self.offer_turn(process, group);
        }
        Then::GoesOn
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
        self.account_memory(process);
        let process = &mut self.processes[process as usize];
        process.exec(&affinity);
        let (policy, view) = process.parts(self.now, &self.topology);
        policy.exec(&view, cpu, number);
        Then::GoesOn
    }

    /// Ends a thread because another one replaces the program. The policy hears of that, not of each thread.
    fn end_other(&mut self, thread: u32) {
        let state = &self.threads[thread as usize];
        let (cpu, runs) = (state.cpu, state.state == State::Running);
        self.end(thread);
        if runs {
            self.leave(cpu);
        }
        self.free_threads.push(thread);
    }

    /// Takes a thread out of its process. Whether it runs stays as it is.
    fn end(&mut self, thread: u32) {
        self.forget(thread);
        let state = &self.threads[thread as usize];
        let (process, group) = (state.process, state.group);
        let ours = &mut self.processes[process as usize];
        ours.users -= 1;
        let together = &mut ours.together[group as usize];
        together.living -= 1;
        together.at_barrier.retain(|&other| other != thread);
        together.turns.leave(thread);
        let all_wait = together.at_barrier.len() as u32 == together.living;
        if all_wait {
            self.open_barrier(process, group);
        }
        self.offer_turn(process, group);
    }

    /// A thread that runs on a CPU ends, and perhaps its process with it.
    fn end_running(&mut self, cpu: Cpu, thread: u32) {
        self.end(thread);
        let state = &self.threads[thread as usize];
        let (process, number) = (state.process, state.number);
        let (policy, view) = self.processes[process as usize].parts(self.now, &self.topology);
        policy.exit(&view, number, cpu);
        self.leave(cpu);
        self.free_threads.push(thread);
        self.bury_if_over(process);
    }
}
