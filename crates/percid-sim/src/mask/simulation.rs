//! The simulation of the CPUs and of the masks' lines, event by event.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::contract::{MaskStep, MaskViolation};
use super::line::{Access, Grant, Line};
use super::outcome::{Counters, Outcome};
use super::parameters::Parameters;
use super::policy::{BitPolicy, Cycles, Join};
use super::ready::{Ready, Space, Thread};
use super::workload::Spread;
use crate::random::Random;
use crate::topology::{Cpu, Topology};

/// Runs the program on the machine and measures it, in about half a microsecond per turn. Returns
/// `None` if it was stopped.
///
/// # Errors
///
/// Returns the violation if the policy breaks its [contract](BitPolicy#contract).
pub fn simulate(
    parameters: &Parameters,
    policy: &dyn BitPolicy,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, MaskViolation> {
    let mut simulation = Simulation::new(parameters, policy, seed, stop);
    let measured = u64::from(parameters.turns_per_cpu) * u64::from(parameters.topology.cpus());
    simulation.run(measured / 5);
    simulation.settle_all();
    simulation.counters = Counters::since(simulation.now);
    simulation.run(measured);
    simulation.settle_all();
    if let Some(violation) = simulation.violation {
        return Err(violation);
    }
    let outcome = simulation.counters.outcome(parameters, policy.name(), simulation.now);
    Ok((!stop.load(Relaxed)).then_some(outcome))
}

/// The activity of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Runs a thread.
    Work,
    /// Flushes translations for a thread: reads the mask.
    Flush,
    /// Switches, and tests its bit.
    Test,
    /// Switches, and sets its bit.
    Set,
    /// Switches, and loads page tables.
    Reload,
    /// Switches, and clears its bit in the mask of the old address space.
    Leave,
    /// Executes the rest of the switch.
    Schedule,
    /// Idle; the page tables stay loaded.
    Idle,
    /// In a kernel thread; the page tables stay loaded.
    Kernel,
    /// Clears its bit, because a flush found that it does not run the address space.
    Interrupted,
}

impl Activity {
    /// Returns `true` if the CPU executes instructions, so that its siblings share the core.
    fn executes(self) -> bool {
        matches!(self, Activity::Work | Activity::Reload | Activity::Schedule | Activity::Kernel)
    }

    /// Returns `true` if the activity ends after a given number of executed cycles.
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

    /// Returns `true` for the accesses to the mask before a thread runs. The published latencies
    /// are theirs.
    fn is_switch(self) -> bool {
        matches!(self, Activity::Test | Activity::Set)
    }

    /// Returns `true` if interrupts are on, so that the CPU handles a flush at once.
    fn can_be_interrupted(self) -> bool {
        matches!(self, Activity::Work | Activity::Idle | Activity::Kernel)
    }
}

/// The activity that an interrupt stopped and that follows it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Resume {
    /// The rest of a turn.
    Work(f64),
    /// Idleness, or the thread that was placed on the CPU during the interrupt.
    Idle,
    Kernel,
    /// The choice of a thread, because the kernel thread's time ended during the interrupt.
    Choose,
}

#[derive(Debug, Clone)]
struct CpuState {
    activity: Activity,
    /// The address space whose page tables are loaded.
    loaded: Space,
    /// The thread that runs or is switched to; `None` while the CPU is idle or in a kernel thread.
    thread: Option<Thread>,
    /// The address space that this switch leaves, if the CPU must clear its bit there.
    leaving: Option<Space>,
    /// The handling of its bit at the last switch, and `true` if that was a switch across.
    joined: (Join, bool),
    /// Masks in which flushes require the CPU to clear its bit.
    interrupts: VecDeque<Space>,
    resume: Resume,
    /// Remaining cycles of a timed activity, at normal speed.
    remaining: f64,
    /// Number of normal cycles that the CPU executes in one cycle: more than one while its siblings
    /// wait.
    speed: f64,
    /// Time up to which `remaining` and the counters are current.
    settled: Cycles,
    /// Number of the valid event that ends an execution.
    execution: u64,
    /// The mask that the CPU accesses; `requested` is the time of the request.
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

/// The mask of an address space.
#[derive(Debug)]
struct Mask {
    line: Line,
    members: Vec<bool>,
    trimmed: Option<Cycles>,
}

/// An event. The order only serves the heap: entries have unique numbers before their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The CPU has executed its cycles.
    Executed { cpu: Cpu, execution: u64 },
    /// The CPU has the line.
    Granted { cpu: Cpu },
    /// The CPU's kernel thread has ended.
    Returned { cpu: Cpu },
    /// The thread wakes.
    Woken { thread: Thread },
}

struct Simulation<'a> {
    parameters: &'a Parameters,
    policy: &'a dyn BitPolicy,
    stop: &'a AtomicBool,
    random: Random,
    siblings: Vec<Vec<Cpu>>,
    masks: Vec<Mask>,
    cpus: Vec<CpuState>,
    /// The CPU on which each thread ran last.
    ran_on: Vec<Cpu>,
    ready: Ready,
    idle: BTreeSet<Cpu>,
    events: BinaryHeap<Reverse<(Cycles, u64, Event)>>,
    /// Number of scheduled events, so that events at the same time keep their order.
    scheduled: u64,
    now: Cycles,
    counters: Counters,
    /// The first breach of the policy's contract, which ends the simulation.
    violation: Option<MaskViolation>,
}

impl<'a> Simulation<'a> {
    /// Creates a simulation in which each CPU with a thread is somewhere in the thread's work, and
    /// a member of its mask.
    fn new(
        parameters: &'a Parameters,
        policy: &'a dyn BitPolicy,
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
            joined: (Join::Set, true),
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
            violation: None,
        };
        for thread in 0..threads {
            simulation.start(thread);
        }
        simulation
    }

    /// Puts a thread on the CPU with the same number, or into the queue.
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

    /// Returns the address space of a thread; threads of all processes alternate.
    fn space_of(&self, thread: Thread) -> Space {
        thread % self.parameters.processes
    }

    /// Simulates this many turns, unless it is stopped or the policy breaks its contract. Events never run out: every thread runs,
    /// sleeps or is in a queue whose head has an event.
    fn run(&mut self, turns: u64) {
        let end = self.counters.turns + turns;
        let goes_on = |it: &Self| it.violation.is_none() && !it.stop.load(Relaxed);
        while self.counters.turns < end && goes_on(self) {
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

    /// Returns `true` if the thread that was switched to begins with a flush.
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

    /// Ends the turn of the thread on `cpu`.
    fn turn_ends(&mut self, cpu: Cpu, thread: Thread) {
        self.counters.turns += 1;
        self.ran_on[thread as usize] = cpu;
        self.state(cpu).thread = None;
        if self.random.unit() < self.parameters.sleep_share {
            let mean = self.parameters.cycles_of_us(self.parameters.sleep_us);
            let wake = self.now + self.random.exponential(mean) as Cycles;
            self.push_event(wake, Event::Woken { thread });
        } else {
            self.ready.push(self.space_of(thread), thread);
        }
        if self.random.unit() < self.parameters.kernel_share {
            let mean = self.parameters.cycles_of_us(self.parameters.kernel_us);
            let back = self.now + self.random.exponential(mean) as Cycles;
            self.push_event(back, Event::Returned { cpu });
            self.rest(cpu, Activity::Kernel);
        } else {
            self.choose(cpu, Some(thread));
        }
    }

    /// Lets `cpu` take the next thread or become idle. If the next thread is `before`, which just
    /// ran, nothing is switched.
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

    /// Places a woken thread on its last CPU if that is idle, or on the nearest idle CPU.
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

    /// Begins the switch of `cpu` to a thread.
    fn enter(&mut self, cpu: Cpu, thread: Thread) {
        let space = self.space_of(thread);
        let across = self.state(cpu).loaded != space;
        self.counters.switches += 1;
        self.counters.switches_across += u64::from(across);
        let join = self.policy.join(across);
        self.state(cpu).joined = (join, across);
        match join {
            Join::Test => self.access(cpu, Activity::Test, space, Access::Load),
            Join::Set => self.access(cpu, Activity::Set, space, Access::Modify),
            Join::Keep => self.joined(cpu, space, true),
        }
    }

    /// Continues a switch after the bit has been set. If the bit was clear before, the CPU has
    /// missed flushes, so it loads the page tables again.
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
        self.expect_member(cpu, loaded);
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

    /// Checks the contract for a CPU that runs a thread of this address space.
    #[inline]
    fn expect_member(&mut self, cpu: Cpu, space: Space) {
        if !self.is_member(cpu, space) {
            self.violated(cpu, space);
        }
    }

    /// Ends the simulation after this event. The first violation counts.
    #[cold]
    fn violated(&mut self, cpu: Cpu, space: Space) {
        let CpuState { joined: (join, across), thread, .. } = *self.state(cpu);
        self.violation.get_or_insert_with(|| MaskViolation {
            policy: self.policy.name().to_owned(),
            at: self.now,
            cpu,
            thread: thread.unwrap_or_default(),
            space,
            step: MaskStep::of(across, join),
        });
    }

    fn is_member(&self, cpu: Cpu, space: Space) -> bool {
        self.masks[space as usize].members[cpu as usize]
    }

    /// Returns `true` if the CPU runs a thread of this address space, or is switching to one.
    fn runs(&self, cpu: Cpu, space: Space) -> bool {
        self.cpus[cpu as usize].thread.is_some_and(|thread| self.space_of(thread) == space)
    }

    /// Interrupts the members of the mask that the flusher has read. Members that do not run the
    /// address space must clear their bits, if the policy and the trim interval require it.
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
        let elapsed = self.masks[space as usize].trimmed.map(|trimmed| self.now - trimmed);
        self.policy.trims(elapsed, interval)
    }

    /// Executes the pending interrupts of flushes, if interrupts are on.
    fn answer(&mut self, cpu: Cpu) {
        if !self.state(cpu).activity.can_be_interrupted() {
            return;
        }
        while let Some(space) = self.state(cpu).interrupts.pop_front() {
            // Since the flush, the CPU may have left the mask, or may run the address space again.
            let clears = self.policy.clears_on_interrupt(self.runs(cpu, space));
            if self.is_member(cpu, space) && clears {
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
                let loaded = self.state(cpu).loaded;
                self.expect_member(cpu, loaded);
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

    /// Stops `cpu` until it has the line of a mask.
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
        self.push_event(grant.done, Event::Granted { cpu: grant.cpu });
    }

    /// Starts another activity of `cpu`. This may change the speed of its siblings.
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

    /// Continues at the speed that the siblings' activities allow. The previous event that ends the
    /// execution becomes void.
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
            self.push_event(end, event);
        }
    }

    /// Updates the remaining cycles of a CPU and the counters to the current time.
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

    fn push_event(&mut self, time: Cycles, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }
}

/// Returns, for each CPU, the other CPUs of its core.
fn siblings(topology: &Topology) -> Vec<Vec<Cpu>> {
    let mut cores = vec![Vec::new(); topology.cores() as usize];
    let core = |cpu| topology.place(cpu).core as usize;
    (0..topology.cpus()).for_each(|cpu| cores[core(cpu)].push(cpu));
    let others = |cpu| cores[core(cpu)].iter().copied().filter(|other| *other != cpu).collect();
    (0..topology.cpus()).map(others).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Arbitration, MaskPolicy, Source};
    use super::*;

    fn run(policy: MaskPolicy, change: impl FnOnce(&mut Parameters)) -> Outcome {
        let mut parameters = Parameters { turns_per_cpu: 300, ..Parameters::default() };
        change(&mut parameters);
        let outcome = simulate(&parameters, &policy, 1, &AtomicBool::new(false));
        outcome.expect("the contract is kept").expect("nobody stops it")
    }

    fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
        let error = value / expected - 1.0;
        assert!(error.abs() <= tolerance, "{what}: {value}, expected {expected}");
    }

    /// Divides the threads between two processes; this share of switches leads to the other
    /// process.
    fn among_processes(parameters: &mut Parameters, share: f64) {
        (parameters.processes, parameters.threads) = (2, 120);
        parameters.other_space_share = Some(share);
    }

    #[test]
    fn one_cpu_owns_the_line_forever() {
        let alone = run(MaskPolicy::SetAlways, |it| *it = it.with_cpus(1));
        assert_eq!(alone.transfers_per_second, 0.0);
        assert_eq!(alone.latency, Some(13.0), "the locked instruction");
        let two = run(MaskPolicy::SetAlways, |it| *it = it.with_cpus(2));
        assert!(two.transfers_per_second > 0.0);
    }

    #[test]
    fn a_line_that_is_never_cleared_never_moves() {
        let never = run(MaskPolicy::TestFirst, |it| it.kernel_share = 0.0);
        assert_eq!((never.cleared, never.transfers_per_second, never.reloads), (0, 0.0, 0));
        let sometimes = run(MaskPolicy::TestFirst, |it| it.kernel_share = 0.01);
        assert!(sometimes.cleared > 0 && sometimes.transfers_per_second > 0.0);
        assert!(sometimes.reloads > 0, "who was cleared has missed a flush");
        // CPUs that are still away, or between the two events, account for the difference.
        assert!(sometimes.reloads.abs_diff(sometimes.cleared) <= 120, "{sometimes:?}");
    }

    #[test]
    fn the_line_has_one_owner_at_a_time() {
        let queued = run(MaskPolicy::SetAlways, |_| {});
        assert!(queued.line_busy <= 1.0, "{}", queued.line_busy);
        let unqueued = run(MaskPolicy::SetAlways, |it| it.arbitration = Arbitration::Unqueued);
        assert!(unqueued.line_busy > 1.0, "{}", unqueued.line_busy);
    }

    /// Without a queue, the mean latency is that of the transfer between two random CPUs.
    #[test]
    fn without_a_queue_only_the_distance_counts() {
        let outcome = run(MaskPolicy::SetAlways, |it| it.arbitration = Arbitration::Unqueued);
        let expected = (90.0 * 554.0 + 28.0 * 43.0) / 119.0 + 13.0;
        assert_near("latency", outcome.latency.unwrap(), expected, 0.02);
    }

    /// A closed queue has N CPUs that each think for Z and are served for S. A cycle takes at least
    /// N S and at least Z + S; it takes N S if the line is always busy.
    #[test]
    fn the_latency_obeys_the_bounds_of_a_closed_queue() {
        for cpus in [15, 60, 90, 120] {
            let mut thinking = 0.0;
            let outcome = run(MaskPolicy::SetAlways, |it| {
                *it = it.with_cpus(cpus);
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

    /// If cores were not shared, the throughput would be the share that the scheduler leaves.
    #[test]
    fn without_siblings_the_gain_is_the_share_that_is_won_back() {
        let [before, after] = [MaskPolicy::SetAlways, MaskPolicy::TestFirst]
            .map(|policy| run(policy, |it| (it.alone_speed, it.kernel_share) = (1.0, 0.0)));
        let expected = (1.0 - after.scheduler_share) / (1.0 - before.scheduler_share);
        assert_near("gain", after.throughput / before.throughput, expected, 0.005);
    }

    /// If the line limits the program, faster siblings only return to the queue earlier.
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
        let throughput =
            |cpus| run(MaskPolicy::TestFirst, |it| *it = it.with_cpus(cpus)).throughput;
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
        // Each CPU of two processes has run the thread that had waited longest.
        let fair = run(MaskPolicy::TestFirst, |it| {
            among_processes(it, 0.0);
            it.other_space_share = None;
        });
        let found = fair.switches_across as f64 / fair.switches as f64;
        assert!((0.4..0.6).contains(&found), "{found}");
    }

    /// The published change tests only within one address space. If all switches lead to another
    /// one, both policies are the same, and every switch costs two modifications and a reload.
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

    /// The scheduler's share consists of the switch and of loading page tables.
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

    /// With fewer threads than CPUs, every switch leads to the idle task and back.
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
        let outcome = |seed| {
            let outcome = simulate(&parameters, &MaskPolicy::TestFirst, seed, &never);
            outcome.expect("the contract is kept")
        };
        assert!(outcome(1).is_some());
        assert_eq!(outcome(1), outcome(1));
        assert_ne!(outcome(1), outcome(2));
        let stopped = simulate(&parameters, &MaskPolicy::TestFirst, 1, &AtomicBool::new(true));
        assert_eq!(stopped, Ok(None));
    }

    #[test]
    fn every_access_of_a_switch_is_in_the_books() {
        let outcome = run(MaskPolicy::SetAlways, |it| it.kernel_share = 0.0);
        let accesses: u64 = outcome.sources.iter().map(|(_, count)| count).sum();
        // CPUs that wait at the start or end of the measurement account for the difference.
        assert!(accesses.abs_diff(outcome.switches) <= 120, "{accesses} {}", outcome.switches);
        let (farthest, count) = outcome.sources[6];
        assert_eq!(farthest, Source::ModifiedInMachine);
        assert_near("share of other sockets", count as f64 / accesses as f64, 90.0 / 119.0, 0.02);
    }

    /// With three last-level caches in a socket, lines also come from other caches of the socket.
    #[test]
    fn sockets_may_have_several_caches() {
        let machine = crate::machine::Machine::preset("epyc-9654").expect("a preset");
        let (_, workload) = super::super::parameters::published();
        let parameters = Parameters::from_machine(&machine, &workload).expect("as many CPUs");
        let parameters = Parameters { turns_per_cpu: 20, ..parameters };
        let outcome = simulate(&parameters, &MaskPolicy::SetAlways, 1, &AtomicBool::new(false));
        let sources = outcome.expect("the contract is kept").expect("nobody stops it").sources;
        let count = |of: Source| sources.iter().find(|(source, _)| *source == of).map(|it| it.1);
        assert!(count(Source::ModifiedInSocket) > count(Source::ModifiedInCache), "{sources:?}");
        assert!(count(Source::ModifiedInMachine) > count(Source::ModifiedInSocket), "{sources:?}");
    }
}
