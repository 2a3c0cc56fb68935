//! The CPUs, the masks' lines between them, and the clock.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::line::{Access, Grant, Line};
use super::outcome::{Counters, Outcome};
use super::parameters::Parameters;
use super::policy::{Cycles, MaskPolicy};
use super::ready::{Ready, Space, Thread};
use super::workload::Spread;
use crate::random::Random;
use crate::topology::{Cpu, Topology};

/// Runs the program on the machine and measures it. About half a microsecond for each turn. None if
/// it was stopped.
pub fn simulate(
    parameters: &Parameters,
    policy: MaskPolicy,
    seed: u64,
    stop: &AtomicBool,
) -> Option<Outcome> {
    let mut simulation = Simulation::new(parameters, policy, seed, stop);
    let measured = u64::from(parameters.turns_per_cpu) * u64::from(parameters.topology.cpus());
    simulation.run(measured / 5);
    simulation.settle_all();
    simulation.counters = Counters::since(simulation.now);
    simulation.run(measured);
    simulation.settle_all();
    let outcome = simulation.counters.outcome(parameters, policy, simulation.now);
    (!stop.load(Relaxed)).then_some(outcome)
}

/// What a CPU is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Runs a thread.
    Work,
    /// A thread flushes translations: it reads the mask.
    Flush,
    /// Switches, and tests its bit.
    Test,
    /// Switches, and sets its bit.
    Set,
    /// Switches, and loads page tables.
    Reload,
    /// Switches, and clears its bit in the mask of the address space that it leaves.
    Leave,
    /// Does the rest of the switch.
    Schedule,
    /// Idle; the page tables stay loaded.
    Idle,
    /// In a kernel thread; the page tables stay loaded.
    Kernel,
    /// Clears its bit because a flush did not find it where it was expected.
    Interrupted,
}

impl Activity {
    /// It executes instructions, so that the sibling has to share the core.
    fn executes(self) -> bool {
        matches!(self, Activity::Work | Activity::Reload | Activity::Schedule | Activity::Kernel)
    }

    /// It ends when so many cycles have been executed.
    fn is_timed(self) -> bool {
        matches!(self, Activity::Work | Activity::Reload | Activity::Schedule)
    }

    fn is_scheduler(self) -> bool {
        matches!(
            self,
            Activity::Test
                | Activity::Set
                | Activity::Reload
                | Activity::Leave
                | Activity::Schedule
        )
    }

    /// It is on the way to a thread: its accesses to the mask are those that were measured.
    fn is_switch(self) -> bool {
        matches!(self, Activity::Test | Activity::Set)
    }

    /// Interrupts are on: a flush is answered at once.
    fn can_be_interrupted(self) -> bool {
        matches!(self, Activity::Work | Activity::Idle | Activity::Kernel)
    }
}

/// What an interrupt stopped, and what comes after it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Resume {
    /// The rest of a turn.
    Work(f64),
    /// Idleness, or the thread that was placed here meanwhile.
    Idle,
    Kernel,
    /// The kernel thread's time is over meanwhile.
    Choose,
}

#[derive(Debug, Clone)]
struct CpuState {
    activity: Activity,
    /// Whose page tables are loaded.
    loaded: Space,
    /// The thread that runs or is switched to; none while it is idle or in a kernel thread.
    thread: Option<Thread>,
    /// The address space that is left by this switch, if its mask must be told.
    leaving: Option<Space>,
    /// Masks in which its bit is to be cleared, because of flushes.
    interrupts: VecDeque<Space>,
    resume: Resume,
    /// Cycles left of what is timed, at ordinary speed.
    remaining: f64,
    /// How many ordinary cycles it executes in one: more than one while its siblings wait.
    speed: f64,
    /// Up to when `remaining` and the books are true.
    settled: Cycles,
    /// Which of the events that end an execution is the valid one.
    execution: u64,
    /// The mask that it accesses, and since when.
    accessed: Space,
    requested: Cycles,
}

impl CpuState {
    fn is_away(&self) -> bool {
        match self.activity {
            Activity::Idle | Activity::Kernel => true,
            Activity::Interrupted => !matches!(self.resume, Resume::Work(_)),
            _ => false,
        }
    }
}

/// An address space's mask.
#[derive(Debug)]
struct Mask {
    line: Line,
    members: Vec<bool>,
    trimmed: Option<Cycles>,
}

/// Ordered only because the queue of events needs it; no two events have the same number before
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The CPU has executed what it had to.
    Executed { cpu: Cpu, execution: u64 },
    /// The CPU has the line.
    Granted { cpu: Cpu },
    /// The CPU's kernel thread is done.
    Returned { cpu: Cpu },
    /// The thread wakes.
    Woken { thread: Thread },
}

struct Simulation<'a> {
    parameters: &'a Parameters,
    policy: MaskPolicy,
    stop: &'a AtomicBool,
    random: Random,
    siblings: Vec<Vec<Cpu>>,
    masks: Vec<Mask>,
    cpus: Vec<CpuState>,
    /// Where each thread ran last.
    ran_on: Vec<Cpu>,
    ready: Ready,
    idle: BTreeSet<Cpu>,
    events: BinaryHeap<Reverse<(Cycles, u64, Event)>>,
    /// Counts events, so that those of one time keep their order.
    scheduled: u64,
    now: Cycles,
    counters: Counters,
}

impl<'a> Simulation<'a> {
    /// All CPUs for which there is a thread are somewhere in its work, and members of its mask.
    fn new(
        parameters: &'a Parameters,
        policy: MaskPolicy,
        seed: u64,
        stop: &'a AtomicBool,
    ) -> Simulation<'a> {
        let (cpus, spaces) = (parameters.topology.cpus(), parameters.processes);
        let mask = |_| Mask {
            line: Line::new(parameters),
            members: vec![false; cpus as usize],
            trimmed: None,
        };
        let cpu = |cpu: Cpu| CpuState {
            activity: Activity::Idle,
            loaded: cpu % spaces,
            thread: None,
            leaving: None,
            interrupts: VecDeque::new(),
            resume: Resume::Idle,
            remaining: 0.0,
            speed: 1.0,
            settled: 0,
            execution: 0,
            accessed: 0,
            requested: 0,
        };
        let threads = spaces * parameters.threads;
        let mut simulation = Simulation {
            parameters,
            policy,
            stop,
            random: Random::new(seed),
            siblings: siblings(&parameters.topology),
            masks: (0..spaces).map(mask).collect(),
            cpus: (0..cpus).map(cpu).collect(),
            ran_on: (0..threads).map(|thread| thread % cpus).collect(),
            ready: Ready::new(spaces),
            idle: (threads.min(cpus)..cpus).collect(),
            events: BinaryHeap::new(),
            scheduled: 0,
            now: 0,
            counters: Counters::default(),
        };
        for thread in 0..threads {
            simulation.start(thread);
        }
        simulation
    }

    /// Puts a thread on the CPU with its number, or into the queue.
    fn start(&mut self, thread: Thread) {
        let space = self.space_of(thread);
        if thread >= self.parameters.topology.cpus() {
            self.ready.push(space, thread);
            return;
        }
        self.masks[space as usize].members[thread as usize] = true;
        self.state(thread).thread = Some(thread);
        let work = self.random.unit() * self.parameters.cycles_of_us(self.parameters.work_us);
        self.begin(thread, Activity::Work, work);
    }

    /// Threads of all processes alternate.
    fn space_of(&self, thread: Thread) -> Space {
        thread % self.parameters.processes
    }

    /// Goes on for this many turns, or until it is stopped. Events never run out: every thread runs, sleeps or is in a
    /// queue, at whose head there is an event.
    fn run(&mut self, turns: u64) {
        let end = self.counters.turns + turns;
        while self.counters.turns < end && !self.stop.load(Relaxed) {
            let Some(Reverse((time, _, event))) = self.events.pop() else { return };
            self.now = time;
            match event {
                Event::Executed { cpu, execution } => self.executed(cpu, execution),
                Event::Granted { cpu } => self.granted(cpu),
                Event::Returned { cpu } => self.returned(cpu),
                Event::Woken { thread } => self.woken(thread),
            }
        }
    }

    fn state(&mut self, cpu: Cpu) -> &mut CpuState {
        &mut self.cpus[cpu as usize]
    }

    fn executed(&mut self, cpu: Cpu, execution: u64) {
        let CpuState { activity, execution: valid, thread, .. } = *self.state(cpu);
        let Some(thread) = thread.filter(|_| execution == valid) else { return };
        match activity {
            Activity::Work => self.turn_ends(cpu, thread),
            Activity::Reload => self.reloaded(cpu),
            _ if self.flushes() => {
                let space = self.space_of(thread);
                self.access(cpu, Activity::Flush, space, Access::Load);
            }
            _ => self.work(cpu),
        }
    }

    /// Whether the thread that was switched to begins with a flush.
    fn flushes(&mut self) -> bool {
        self.random.unit() * self.parameters.turns_per_flush < 1.0
    }

    fn granted(&mut self, cpu: Cpu) {
        let CpuState { activity, accessed, .. } = *self.state(cpu);
        let member = &mut self.masks[accessed as usize].members[cpu as usize];
        match activity {
            Activity::Test if *member => self.joined(cpu, accessed, true),
            Activity::Test => self.access(cpu, Activity::Set, accessed, Access::Modify),
            Activity::Set => {
                let was = std::mem::replace(member, true);
                self.joined(cpu, accessed, was);
            }
            Activity::Leave => {
                self.clear(cpu, accessed);
                self.schedule(cpu);
            }
            Activity::Flush => {
                self.flush(cpu, accessed);
                self.work(cpu);
            }
            _ => {
                self.clear(cpu, accessed);
                self.resume(cpu);
            }
        }
        self.serve(accessed);
    }

    fn returned(&mut self, cpu: Cpu) {
        match self.state(cpu).activity {
            Activity::Interrupted => self.state(cpu).resume = Resume::Choose,
            _ => self.choose(cpu, None),
        }
    }

    /// The thread on `cpu` gives it up.
    fn turn_ends(&mut self, cpu: Cpu, thread: Thread) {
        self.counters.turns += 1;
        self.ran_on[thread as usize] = cpu;
        self.state(cpu).thread = None;
        if self.random.unit() < self.parameters.sleep_share {
            let mean = self.parameters.cycles_of_us(self.parameters.sleep_us);
            let wake = self.now + self.random.exponential(mean) as Cycles;
            self.at(wake, Event::Woken { thread });
        } else {
            self.ready.push(self.space_of(thread), thread);
        }
        if self.random.unit() < self.parameters.kernel_share {
            let mean = self.parameters.cycles_of_us(self.parameters.kernel_us);
            let back = self.now + self.random.exponential(mean) as Cycles;
            self.at(back, Event::Returned { cpu });
            self.rest(cpu, Activity::Kernel);
        } else {
            self.choose(cpu, Some(thread));
        }
    }

    /// `cpu` takes the next thread, or becomes idle. Where that is the thread that ran `before`,
    /// nothing is switched.
    fn choose(&mut self, cpu: Cpu, before: Option<Thread>) {
        let loaded = self.state(cpu).loaded;
        let next = match self.parameters.other_space_share {
            None => self.ready.pop(),
            Some(share) if self.random.unit() < share => {
                self.ready.pop_other(loaded).or_else(|| self.ready.pop())
            }
            Some(_) => self.ready.pop_of(loaded).or_else(|| self.ready.pop()),
        };
        self.state(cpu).thread = next;
        match next {
            Some(thread) if before == next => {
                debug_assert_eq!(self.space_of(thread), loaded);
                self.work(cpu);
            }
            Some(thread) => self.enter(cpu, thread),
            None => {
                self.idle.insert(cpu);
                self.rest(cpu, Activity::Idle);
            }
        }
    }

    /// The thread runs where it ran last, if that CPU is idle, or on the nearest one that is.
    fn woken(&mut self, thread: Thread) {
        let last = self.ran_on[thread as usize];
        let topology = &self.parameters.topology;
        let nearest = self.idle.iter().min_by_key(|&&cpu| (topology.reach(last, cpu), cpu != last));
        let Some(&cpu) = nearest else {
            self.ready.push(self.space_of(thread), thread);
            return;
        };
        self.idle.remove(&cpu);
        self.state(cpu).thread = Some(thread);
        if self.state(cpu).activity == Activity::Idle {
            self.enter(cpu, thread);
        }
    }

    /// `cpu` switches to a thread.
    fn enter(&mut self, cpu: Cpu, thread: Thread) {
        let space = self.space_of(thread);
        let across = self.state(cpu).loaded != space;
        self.counters.switches += 1;
        self.counters.switches_across += u64::from(across);
        if self.policy.tests(across) {
            self.access(cpu, Activity::Test, space, Access::Load);
        } else {
            self.access(cpu, Activity::Set, space, Access::Modify);
        }
    }

    /// The bit is set. If it was not, then flushes have been missed meanwhile: the page tables are
    /// loaded again.
    fn joined(&mut self, cpu: Cpu, space: Space, was: bool) {
        let before = std::mem::replace(&mut self.state(cpu).loaded, space);
        let across = before != space;
        if across && self.policy.clears_on_leaving() {
            self.state(cpu).leaving = Some(before);
        }
        if across || !was {
            self.counters.reloads += 1;
            let cycles = self.parameters.cycles(self.parameters.reload_ns);
            self.begin(cpu, Activity::Reload, cycles as f64);
        } else {
            self.schedule(cpu);
        }
    }

    fn reloaded(&mut self, cpu: Cpu) {
        match self.state(cpu).leaving.take() {
            Some(left) => self.access(cpu, Activity::Leave, left, Access::Modify),
            None => self.schedule(cpu),
        }
    }

    fn schedule(&mut self, cpu: Cpu) {
        let cycles = self.parameters.cycles_of_us(self.parameters.scheduler_us);
        self.begin(cpu, Activity::Schedule, cycles);
    }

    fn work(&mut self, cpu: Cpu) {
        let loaded = self.state(cpu).loaded;
        debug_assert!(self.is_member(cpu, loaded), "a flush would skip CPU {cpu}");
        let mean = self.parameters.cycles_of_us(self.parameters.work_us);
        let work = match self.parameters.work_spread {
            Spread::Exponential => self.random.exponential(mean),
            Spread::Constant => mean,
        };
        self.begin(cpu, Activity::Work, work);
        self.answer(cpu);
    }

    fn rest(&mut self, cpu: Cpu, activity: Activity) {
        self.begin(cpu, activity, 0.0);
        self.answer(cpu);
    }

    fn is_member(&self, cpu: Cpu, space: Space) -> bool {
        self.masks[space as usize].members[cpu as usize]
    }

    /// Whether the CPU runs a thread of this address space, or is on the way to one.
    fn runs(&self, cpu: Cpu, space: Space) -> bool {
        self.cpus[cpu as usize].thread.is_some_and(|thread| self.space_of(thread) == space)
    }

    /// The flusher has read the mask and interrupts the members. Those that are elsewhere clear
    /// their bits, if the policy and the time say so.
    fn flush(&mut self, flusher: Cpu, space: Space) {
        self.counters.flushes += 1;
        let trims = self.may_trim(space);
        for cpu in (0..self.parameters.topology.cpus()).filter(|cpu| *cpu != flusher) {
            if !self.is_member(cpu, space) {
                continue;
            }
            self.counters.interrupts += 1;
            if self.runs(cpu, space) {
                continue;
            }
            self.counters.needless_interrupts += 1;
            if trims && !self.state(cpu).interrupts.contains(&space) {
                self.masks[space as usize].trimmed = Some(self.now);
                self.state(cpu).interrupts.push_back(space);
                self.answer(cpu);
            }
        }
    }

    fn may_trim(&self, space: Space) -> bool {
        let interval = self.parameters.cycles(self.parameters.trim_interval_ms * 1e6);
        match (self.policy, self.masks[space as usize].trimmed) {
            (MaskPolicy::TrimRarely, Some(trimmed)) => self.now - trimmed >= interval,
            _ => true,
        }
    }

    /// If interrupts are on, the CPU does what flushes want of it.
    fn answer(&mut self, cpu: Cpu) {
        if !self.state(cpu).activity.can_be_interrupted() {
            return;
        }
        while let Some(space) = self.state(cpu).interrupts.pop_front() {
            // Meanwhile it may have left, or be back.
            if self.is_member(cpu, space) && !self.runs(cpu, space) {
                self.settle(cpu);
                let state = self.state(cpu);
                state.resume = match state.activity {
                    Activity::Work => Resume::Work(state.remaining),
                    Activity::Kernel => Resume::Kernel,
                    _ => Resume::Idle,
                };
                self.access(cpu, Activity::Interrupted, space, Access::Modify);
                return;
            }
        }
    }

    fn resume(&mut self, cpu: Cpu) {
        let CpuState { resume, thread, .. } = *self.state(cpu);
        match (resume, thread) {
            (Resume::Work(remaining), _) => {
                self.begin(cpu, Activity::Work, remaining);
                self.answer(cpu);
            }
            (Resume::Idle, Some(thread)) => self.enter(cpu, thread),
            (Resume::Idle, None) => self.rest(cpu, Activity::Idle),
            (Resume::Kernel, _) => self.rest(cpu, Activity::Kernel),
            (Resume::Choose, _) => self.choose(cpu, None),
        }
    }

    fn clear(&mut self, cpu: Cpu, space: Space) {
        self.counters.cleared += 1;
        self.masks[space as usize].members[cpu as usize] = false;
    }

    /// `cpu` stops and waits for the line of a mask.
    fn access(&mut self, cpu: Cpu, activity: Activity, space: Space, access: Access) {
        self.begin(cpu, activity, 0.0);
        let now = self.now;
        let state = self.state(cpu);
        (state.accessed, state.requested) = (space, now);
        match self.masks[space as usize].line.request(now, cpu, access) {
            Some(grant) => self.book(grant),
            None => self.serve(space),
        }
    }

    fn serve(&mut self, space: Space) {
        while let Some(grant) = self.masks[space as usize].line.grant(self.now) {
            self.book(grant);
        }
    }

    fn book(&mut self, grant: Grant) {
        let state = &self.cpus[grant.cpu as usize];
        self.counters.access(&grant, state.requested);
        if state.activity.is_switch() {
            self.counters.sample(&grant, state.requested, state.loaded != state.accessed);
        }
        self.at(grant.done, Event::Granted { cpu: grant.cpu });
    }

    /// `cpu` now does something else. That may change how fast its siblings run.
    fn begin(&mut self, cpu: Cpu, activity: Activity, cycles: f64) {
        self.settle(cpu);
        let state = self.state(cpu);
        let changes = state.activity.executes() != activity.executes();
        state.activity = activity;
        state.remaining = cycles;
        self.execute(cpu);
        if changes {
            for at in 0..self.siblings[cpu as usize].len() {
                let sibling = self.siblings[cpu as usize][at];
                self.settle(sibling);
                self.execute(sibling);
            }
        }
    }

    /// From now on at the speed that the siblings leave. What was going to end before ends at
    /// another time.
    fn execute(&mut self, cpu: Cpu) {
        let siblings = &self.siblings[cpu as usize];
        let beside = siblings.iter().any(|&other| self.cpus[other as usize].activity.executes());
        let speed = if beside { 1.0 } else { self.parameters.alone_speed };
        let now = self.now;
        let state = self.state(cpu);
        state.speed = speed;
        state.execution += 1;
        if state.activity.is_timed() {
            let end = now + (state.remaining / speed).ceil() as Cycles;
            let event = Event::Executed { cpu, execution: state.execution };
            self.at(end, event);
        }
    }

    /// Brings a CPU and the books up to now.
    fn settle(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu as usize];
        let elapsed = self.now - state.settled;
        state.settled = self.now;
        let executed = (elapsed as f64 * state.speed).min(state.remaining);
        state.remaining -= executed;
        if state.activity == Activity::Work {
            self.counters.work += executed;
        }
        if state.activity.is_scheduler() {
            self.counters.scheduler += elapsed;
        }
        if !state.is_away() {
            self.counters.present += elapsed;
        }
    }

    fn settle_all(&mut self) {
        (0..self.parameters.topology.cpus()).for_each(|cpu| self.settle(cpu));
    }

    fn at(&mut self, time: Cycles, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }
}

/// For each CPU the other ones of its core.
fn siblings(topology: &Topology) -> Vec<Vec<Cpu>> {
    let mut cores = vec![Vec::new(); topology.cores() as usize];
    let core = |cpu| topology.place(cpu).core as usize;
    (0..topology.cpus()).for_each(|cpu| cores[core(cpu)].push(cpu));
    let others = |cpu| cores[core(cpu)].iter().copied().filter(|other| *other != cpu).collect();
    (0..topology.cpus()).map(others).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Arbitration, Source};
    use super::*;

    fn run(policy: MaskPolicy, change: impl FnOnce(&mut Parameters)) -> Outcome {
        let mut parameters = Parameters { turns_per_cpu: 300, ..Parameters::default() };
        change(&mut parameters);
        simulate(&parameters, policy, 1, &AtomicBool::new(false)).expect("nobody stops it")
    }

    fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
        let error = value / expected - 1.0;
        assert!(error.abs() <= tolerance, "{what}: {value}, expected {expected}");
    }

    /// As many threads in two processes, and this share of switches leads to the other one.
    fn among_processes(parameters: &mut Parameters, share: f64) {
        (parameters.processes, parameters.threads) = (2, 120);
        parameters.other_space_share = Some(share);
    }

    #[test]
    fn one_cpu_owns_the_line_forever() {
        let alone = run(MaskPolicy::SetAlways, |it| *it = it.on(1));
        assert_eq!(alone.transfers_per_second, 0.0);
        assert_eq!(alone.latency, Some(13.0), "the locked instruction");
        let two = run(MaskPolicy::SetAlways, |it| *it = it.on(2));
        assert!(two.transfers_per_second > 0.0);
    }

    #[test]
    fn a_line_that_is_never_cleared_never_moves() {
        let never = run(MaskPolicy::TestFirst, |it| it.kernel_share = 0.0);
        assert_eq!((never.cleared, never.transfers_per_second, never.reloads), (0, 0.0, 0));
        let sometimes = run(MaskPolicy::TestFirst, |it| it.kernel_share = 0.01);
        assert!(sometimes.cleared > 0 && sometimes.transfers_per_second > 0.0);
        assert!(sometimes.reloads > 0, "who was cleared has missed a flush");
        // Those that are still away, or between the two, make the difference.
        assert!(sometimes.reloads.abs_diff(sometimes.cleared) <= 120, "{sometimes:?}");
    }

    #[test]
    fn the_line_has_one_owner_at_a_time() {
        let queued = run(MaskPolicy::SetAlways, |_| {});
        assert!(queued.line_busy <= 1.0, "{}", queued.line_busy);
        let unqueued = run(MaskPolicy::SetAlways, |it| it.arbitration = Arbitration::Unqueued);
        assert!(unqueued.line_busy > 1.0, "{}", unqueued.line_busy);
    }

    /// Without a queue the mean latency is that of the way from one random CPU to another.
    #[test]
    fn without_a_queue_only_the_distance_counts() {
        let outcome = run(MaskPolicy::SetAlways, |it| it.arbitration = Arbitration::Unqueued);
        let expected = (90.0 * 554.0 + 28.0 * 43.0) / 119.0 + 13.0;
        assert_near("latency", outcome.latency.unwrap(), expected, 0.02);
    }

    /// The closed queue: N CPUs that think for Z and are served for S each. A cycle cannot be
    /// shorter than N S, nor than Z + S, and is N S if the line never rests.
    #[test]
    fn the_latency_obeys_the_bounds_of_a_closed_queue() {
        for cpus in [15, 60, 90, 120] {
            let mut thinking = 0.0;
            let outcome = run(MaskPolicy::SetAlways, |it| {
                *it = it.on(cpus);
                it.alone_speed = 1.0;
                it.kernel_share = 0.0;
                it.work_us = 10.0;
                thinking = it.cycles_of_us(it.work_us + it.scheduler_us);
            });
            let latency = outcome.latency.unwrap();
            let cycles = outcome.seconds * 2.8e9;
            let service = outcome.line_busy * cycles / outcome.switches as f64;
            let saturated = f64::from(cpus) * service - thinking;
            assert!(latency >= service * 0.99, "{cpus}: {latency}, service {service}");
            assert!(latency >= saturated * 0.98, "{cpus}: {latency}, bound {saturated}");
            if outcome.line_busy > 0.999 {
                assert_near("saturated latency", latency, saturated, 0.03);
            }
            let population = outcome.switches as f64 / cycles * (latency + thinking);
            assert_near("Little's law", population, f64::from(cpus), 0.02);
        }
        assert!(run(MaskPolicy::SetAlways, |it| it.work_us = 10.0).line_busy > 0.999, "saturated");
    }

    /// If cores were not shared, throughput would be what the scheduler leaves.
    #[test]
    fn without_siblings_the_gain_is_the_share_that_is_won_back() {
        let [before, after] = [MaskPolicy::SetAlways, MaskPolicy::TestFirst]
            .map(|policy| run(policy, |it| (it.alone_speed, it.kernel_share) = (1.0, 0.0)));
        let expected = (1.0 - after.scheduler_share) / (1.0 - before.scheduler_share);
        assert_near("gain", after.throughput / before.throughput, expected, 0.005);
    }

    /// Where the line is what limits the program, faster siblings only come back to the queue
    /// earlier.
    #[test]
    fn at_a_saturated_line_faster_siblings_wait_longer() {
        let at = |alone_speed| {
            run(MaskPolicy::SetAlways, |it| (it.alone_speed, it.work_us) = (alone_speed, 13.0))
        };
        let (slow, fast) = (at(1.0), at(1.9));
        assert!(slow.line_busy > 0.99, "{}", slow.line_busy);
        assert!(fast.latency.unwrap() > 1.3 * slow.latency.unwrap(), "{fast:#?}");
        assert_near("throughput", fast.throughput, slow.throughput, 0.02);
    }

    #[test]
    fn a_waiting_thread_leaves_its_core_to_the_sibling() {
        let throughput = |cpus| run(MaskPolicy::TestFirst, |it| *it = it.on(cpus)).throughput;
        let (lone, shared) = (throughput(60), throughput(120));
        assert_near("one thread for each core", lone / shared, 1.9 / 2.0, 0.01);
    }

    #[test]
    fn the_share_of_switches_to_another_process_is_what_was_asked_for() {
        for share in [0.0, 0.1, 0.5, 1.0] {
            let outcome = run(MaskPolicy::TestFirst, |it| among_processes(it, share));
            let found = outcome.switches_across as f64 / outcome.switches as f64;
            assert!((found - share).abs() < 0.01, "{share}: {found}");
        }
        let alone = run(MaskPolicy::TestFirst, |it| it.other_space_share = Some(1.0));
        assert_eq!(alone.switches_across, 0, "there is no other process");
        // Two processes, and each CPU has had a turn of who waited longest.
        let fair = run(MaskPolicy::TestFirst, |it| {
            among_processes(it, 0.0);
            it.other_space_share = None;
        });
        let found = fair.switches_across as f64 / fair.switches as f64;
        assert!((0.4..0.6).contains(&found), "{found}");
    }

    /// The published change tests only within one address space. Where nothing else happens, it is
    /// what set always is, and every such switch costs two modifications and a reload.
    #[test]
    fn only_the_branch_within_an_address_space_tests_first() {
        let all_across = |policy| {
            run(policy, |it| {
                among_processes(it, 1.0);
                it.kernel_share = 0.0;
            })
        };
        let (before, after) =
            (all_across(MaskPolicy::SetAlways), all_across(MaskPolicy::TestFirst));
        assert_eq!(after.latency, before.latency, "the same branch in both");
        assert_eq!(after.throughput, before.throughput);
        let tested = all_across(MaskPolicy::TestEverywhere);
        assert_ne!(tested.latency, before.latency, "this one tests there too");
        for outcome in [&before, &after, &tested] {
            assert!(outcome.reloads.abs_diff(outcome.switches_across) <= 120, "{outcome:?}");
            assert!(outcome.cleared.abs_diff(outcome.switches_across) <= 120, "{outcome:?}");
        }
        let within = |policy| run(policy, |it| among_processes(it, 0.0)).latency;
        assert_ne!(within(MaskPolicy::SetAlways), within(MaskPolicy::TestFirst));
    }

    /// The scheduler's share is what the switch takes and what loading page tables takes.
    #[test]
    fn loading_page_tables_costs_what_its_number_says() {
        let share = |reload_ns| {
            run(MaskPolicy::TrimRarely, |it| {
                among_processes(it, 1.0);
                (it.kernel_share, it.alone_speed, it.reload_ns) = (0.0, 1.0, reload_ns);
            })
            .scheduler_share
        };
        let expected = |reload_us: f64| (0.944 + reload_us) / (0.944 + reload_us + 16.49);
        assert_near("free", share(0.0), expected(0.0), 0.02);
        assert_near("10 us", share(10_000.0), expected(10.0), 0.02);
    }

    #[test]
    fn leaving_lazily_saves_the_way_out_and_back() {
        let tenth = |policy| run(policy, |it| among_processes(it, 0.1));
        let (eager, lazy) = (tenth(MaskPolicy::TestFirst), tenth(MaskPolicy::TrimRarely));
        assert!(eager.cleared > 100 * lazy.cleared.max(1), "{} {}", eager.cleared, lazy.cleared);
        assert!(lazy.transfers_per_second < eager.transfers_per_second / 10.0);
        assert!(lazy.needless_interrupts > eager.needless_interrupts, "the price of stale bits");
        assert!(lazy.reloads > 0, "page tables are loaded all the same");
    }

    #[test]
    fn trimming_more_often_clears_more() {
        let cleared = |policy, trim_interval_ms| {
            run(policy, |it| {
                among_processes(it, 0.1);
                it.trim_interval_ms = trim_interval_ms;
            })
            .cleared
        };
        let [often, rarely] = [0.0, 1e3].map(|ms| cleared(MaskPolicy::TrimRarely, ms));
        assert!(often > 2 * rarely, "{often} {rarely}");
        assert_eq!(often, cleared(MaskPolicy::LeaveLazily, 1e3), "never trimming too early");
    }

    /// With fewer threads than CPUs every switch leads to the idle task and back.
    #[test]
    fn idle_cpus_keep_the_page_tables() {
        let sleepers = |policy| {
            run(policy, |it| {
                (it.threads, it.sleep_share, it.sleep_us) = (60, 1.0, 20.0);
                (it.kernel_share, it.turns_per_flush) = (0.0, 1e15);
            })
        };
        let outcome = sleepers(MaskPolicy::TestFirst);
        assert_eq!((outcome.switches_across, outcome.reloads, outcome.cleared), (0, 0, 0));
        assert!(outcome.away_share > 0.5, "{}", outcome.away_share);
        assert!(outcome.switches.abs_diff(outcome.turns) <= 120);
        assert!(sleepers(MaskPolicy::SetAlways).transfers_per_second > 0.0);
    }

    #[test]
    fn a_thread_that_has_a_cpu_to_itself_is_never_switched() {
        let alone = run(MaskPolicy::SetAlways, |it| (it.threads, it.kernel_share) = (120, 0.0));
        assert_eq!((alone.switches, alone.scheduler_share), (0, 0.0));
        let one_more = run(MaskPolicy::SetAlways, |it| (it.threads, it.kernel_share) = (121, 0.0));
        assert!(one_more.switches > 0 && one_more.scheduler_share > 0.0);
    }

    #[test]
    fn flushes_do_not_interrupt_who_has_left() {
        let flushing = |policy| {
            run(policy, |it| {
                among_processes(it, 0.3);
                it.turns_per_flush = 10.0;
            })
        };
        let (eager, lazy) = (flushing(MaskPolicy::TestFirst), flushing(MaskPolicy::TrimRarely));
        assert!(eager.flushes > 1000 && lazy.flushes > 1000);
        let needless = |it: &Outcome| it.needless_interrupts as f64 / it.flushes as f64;
        assert!(needless(&eager) < 10.0, "{}", needless(&eager));
        assert!(needless(&lazy) > 40.0, "half of the CPUs run the other: {}", needless(&lazy));
        assert!(lazy.interrupts >= lazy.needless_interrupts);
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome() {
        let parameters = Parameters { turns_per_cpu: 50, ..Parameters::default() };
        let never = AtomicBool::new(false);
        let outcome = |seed| simulate(&parameters, MaskPolicy::TestFirst, seed, &never);
        assert!(outcome(1).is_some());
        assert_eq!(outcome(1), outcome(1));
        assert_ne!(outcome(1), outcome(2));
        assert_eq!(simulate(&parameters, MaskPolicy::TestFirst, 1, &AtomicBool::new(true)), None);
    }

    #[test]
    fn every_access_of_a_switch_is_in_the_books() {
        let outcome = run(MaskPolicy::SetAlways, |it| it.kernel_share = 0.0);
        let accesses: u64 = outcome.sources.iter().map(|(_, count)| count).sum();
        // Those that wait at both ends of the measurement make the difference.
        assert!(accesses.abs_diff(outcome.switches) <= 120, "{accesses} {}", outcome.switches);
        let (farthest, count) = outcome.sources[6];
        assert_eq!(farthest, Source::ModifiedInMachine);
        assert_near("share of other sockets", count as f64 / accesses as f64, 90.0 / 119.0, 0.02);
    }

    /// Three last-level caches in a socket: a line comes from within it, too.
    #[test]
    fn sockets_may_have_several_caches() {
        let machine = crate::machine::Machine::preset("epyc-9654").expect("a preset");
        let (_, workload) = super::super::parameters::published();
        let parameters = Parameters::of(&machine, &workload).expect("as many CPUs");
        let parameters = Parameters { turns_per_cpu: 20, ..parameters };
        let outcome = simulate(&parameters, MaskPolicy::SetAlways, 1, &AtomicBool::new(false));
        let sources = outcome.expect("nobody stops it").sources;
        let count = |of: Source| sources.iter().find(|(source, _)| *source == of).map(|it| it.1);
        assert!(count(Source::ModifiedInSocket) > count(Source::ModifiedInCache), "{sources:?}");
        assert!(count(Source::ModifiedInMachine) > count(Source::ModifiedInSocket), "{sources:?}");
    }
}
