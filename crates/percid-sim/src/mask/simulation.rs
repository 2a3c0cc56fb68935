//! The CPUs, the line between them, and the clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::line::{Access, Grant, Line};
use super::outcome::{Counters, Outcome};
use super::parameters::{Parameters, Spread};
use super::policy::{Cycles, MaskPolicy};
use crate::random::Random;
use crate::topology::{Cpu, Topology};

/// Runs the program on the machine and measures it. About half a microsecond for each switch.
///
/// # Errors
///
/// If the parameters contradict each other or themselves; the text says what was expected.
pub fn simulate(parameters: &Parameters, policy: MaskPolicy, seed: u64) -> Result<Outcome, String> {
    parameters.check()?;
    let mut simulation = Simulation::new(parameters, policy, seed);
    let measured = u64::from(parameters.switches_per_cpu) * u64::from(parameters.cpus);
    simulation.run(measured / 5);
    simulation.settle_all();
    simulation.counters = Counters::since(simulation.now);
    simulation.run(measured);
    simulation.settle_all();
    Ok(simulation.counters.outcome(parameters, policy, simulation.now))
}

/// What a CPU is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Runs a thread of the program.
    Work,
    /// A thread of the program flushes translations: it reads the mask.
    Flush,
    /// Switches, and tests its bit.
    Test,
    /// Switches, and sets its bit.
    Set,
    /// Does the rest of the switch.
    Schedule,
    /// Clears its bit before it goes to another process.
    Leave,
    /// Idle, or in a kernel thread.
    Idle,
    /// Runs another process.
    Foreign,
}

impl Activity {
    /// It executes instructions, so that the sibling has to share the core.
    fn executes(self) -> bool {
        matches!(self, Activity::Work | Activity::Schedule | Activity::Foreign)
    }

    fn is_away(self) -> bool {
        matches!(self, Activity::Idle | Activity::Foreign)
    }

    fn is_scheduler(self) -> bool {
        matches!(self, Activity::Test | Activity::Set | Activity::Schedule | Activity::Leave)
    }

    /// It is on the way to a thread of the program: its accesses to the mask are those that were
    /// measured.
    fn is_switch(self) -> bool {
        matches!(self, Activity::Test | Activity::Set)
    }
}

/// What an absent CPU does about a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clearing {
    No,
    Asked,
    /// It has been asked, and its time away is over meanwhile.
    AskedAndReturning,
}

#[derive(Debug, Clone)]
struct CpuState {
    activity: Activity,
    /// Cycles left of the work or the scheduler's part, at ordinary speed.
    remaining: f64,
    /// How many ordinary cycles it executes in one: more than one while its sibling waits.
    speed: f64,
    /// Up to when `remaining` and the books are true.
    settled: Cycles,
    /// Which of the events that end an execution is the valid one.
    execution: u64,
    /// Its bit in the mask.
    member: bool,
    clearing: Clearing,
    /// When it asked for the line.
    requested: Cycles,
}

/// Ordered only because the queue of events needs it; no two events have the same number before
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The CPU has executed what it had to.
    Executed { cpu: Cpu, execution: u64 },
    /// The CPU has the line.
    Granted { cpu: Cpu },
    /// The CPU comes back to the program.
    Returned { cpu: Cpu },
}

struct Simulation<'a> {
    parameters: &'a Parameters,
    policy: MaskPolicy,
    random: Random,
    siblings: Vec<Option<Cpu>>,
    line: Line,
    cpus: Vec<CpuState>,
    events: BinaryHeap<Reverse<(Cycles, u64, Event)>>,
    /// Counts events, so that those of one time keep their order.
    scheduled: u64,
    now: Cycles,
    trimmed: Option<Cycles>,
    counters: Counters,
}

impl<'a> Simulation<'a> {
    /// All CPUs are members and somewhere in their work.
    fn new(parameters: &'a Parameters, policy: MaskPolicy, seed: u64) -> Simulation<'a> {
        let cpu = CpuState {
            activity: Activity::Idle,
            remaining: 0.0,
            speed: 1.0,
            settled: 0,
            execution: 0,
            member: true,
            clearing: Clearing::No,
            requested: 0,
        };
        let mut simulation = Simulation {
            parameters,
            policy,
            random: Random::new(seed),
            siblings: siblings(&parameters.topology()),
            line: Line::new(parameters),
            cpus: vec![cpu; parameters.cpus as usize],
            events: BinaryHeap::new(),
            scheduled: 0,
            now: 0,
            trimmed: None,
            counters: Counters::default(),
        };
        for cpu in 0..parameters.cpus {
            let work = simulation.random.unit() * parameters.work_cycles;
            simulation.begin(cpu, Activity::Work, work);
        }
        simulation
    }

    /// Goes on for this many switches. Events never run out: every CPU has one, or is in the line's
    /// queue, at whose head there is one.
    fn run(&mut self, switches: u64) {
        let end = self.counters.switches + switches;
        while self.counters.switches < end {
            let Some(Reverse((time, _, event))) = self.events.pop() else { return };
            self.now = time;
            match event {
                Event::Executed { cpu, execution } => self.executed(cpu, execution),
                Event::Granted { cpu } => self.granted(cpu),
                Event::Returned { cpu } => self.returned(cpu),
            }
        }
    }

    fn state(&mut self, cpu: Cpu) -> &mut CpuState {
        &mut self.cpus[cpu as usize]
    }

    fn executed(&mut self, cpu: Cpu, execution: u64) {
        let CpuState { activity, execution: valid, .. } = *self.state(cpu);
        match activity {
            _ if execution != valid => {}
            Activity::Work => self.switch(cpu),
            _ if self.flushes() => self.access(cpu, Activity::Flush, Access::Load),
            _ => self.work(cpu),
        }
    }

    /// Whether the thread that was switched to begins with a flush.
    fn flushes(&mut self) -> bool {
        self.random.unit() * self.parameters.switches_per_flush < 1.0
    }

    fn granted(&mut self, cpu: Cpu) {
        let CpuState { activity, member, .. } = *self.state(cpu);
        match activity {
            Activity::Test if member => self.schedule(cpu),
            Activity::Test => self.access(cpu, Activity::Set, Access::Modify),
            Activity::Set => {
                self.state(cpu).member = true;
                self.schedule(cpu);
            }
            Activity::Flush => {
                self.flush(cpu);
                self.work(cpu);
            }
            Activity::Leave => {
                self.clear(cpu);
                self.go_away(cpu, Activity::Foreign);
            }
            _ => self.cleared_while_away(cpu),
        }
        self.serve();
    }

    fn returned(&mut self, cpu: Cpu) {
        match self.state(cpu).clearing {
            Clearing::No => self.enter(cpu),
            _ => self.state(cpu).clearing = Clearing::AskedAndReturning,
        }
    }

    /// The thread on `cpu` gives it up.
    fn switch(&mut self, cpu: Cpu) {
        self.counters.switches += 1;
        let draw = self.random.unit();
        let Parameters { idle_share, foreign_share, .. } = *self.parameters;
        match () {
            () if draw < idle_share => self.go_away(cpu, Activity::Idle),
            () if draw >= idle_share + foreign_share => self.enter(cpu),
            () if self.policy == MaskPolicy::LeaveLazily => self.go_away(cpu, Activity::Foreign),
            () => self.access(cpu, Activity::Leave, Access::Modify),
        }
    }

    /// `cpu` switches to a thread of the program.
    fn enter(&mut self, cpu: Cpu) {
        match self.policy {
            MaskPolicy::SetAlways => self.access(cpu, Activity::Set, Access::Modify),
            MaskPolicy::TestFirst | MaskPolicy::LeaveLazily => {
                self.access(cpu, Activity::Test, Access::Load)
            }
        }
    }

    fn schedule(&mut self, cpu: Cpu) {
        self.begin(cpu, Activity::Schedule, self.parameters.scheduler_cycles);
    }

    fn work(&mut self, cpu: Cpu) {
        debug_assert!(self.state(cpu).member, "a flush would skip CPU {cpu}");
        let mean = self.parameters.work_cycles;
        let work = match self.parameters.work_spread {
            Spread::Exponential => self.random.exponential(mean),
            Spread::Constant => mean,
        };
        self.begin(cpu, Activity::Work, work);
    }

    fn go_away(&mut self, cpu: Cpu, activity: Activity) {
        let mean = self.parameters.away_ns * self.parameters.clock_ghz;
        let back = self.now + self.random.exponential(mean) as Cycles;
        self.begin(cpu, activity, 0.0);
        self.at(back, Event::Returned { cpu });
    }

    /// The flusher has read the mask and interrupts the members. Those that are absent clear their
    /// bits, if the way and the time say so.
    fn flush(&mut self, flusher: Cpu) {
        self.counters.flushes += 1;
        let trims = self.may_trim();
        let absent = |state: &CpuState| state.member && state.activity.is_away();
        for cpu in (0..self.parameters.cpus).filter(|cpu| *cpu != flusher) {
            if !absent(self.state(cpu)) {
                continue;
            }
            self.counters.needless_interrupts += 1;
            if trims && self.state(cpu).clearing == Clearing::No {
                self.trimmed = Some(self.now);
                self.state(cpu).clearing = Clearing::Asked;
                self.request(cpu, Access::Modify);
            }
        }
    }

    fn may_trim(&self) -> bool {
        let interval = self.parameters.cycles(self.parameters.trim_interval_ns);
        match (self.policy, self.trimmed) {
            (MaskPolicy::LeaveLazily, Some(trimmed)) => self.now - trimmed >= interval,
            _ => true,
        }
    }

    fn cleared_while_away(&mut self, cpu: Cpu) {
        self.clear(cpu);
        let state = self.state(cpu);
        let returning = state.clearing == Clearing::AskedAndReturning;
        state.clearing = Clearing::No;
        if returning {
            self.enter(cpu);
        }
    }

    fn clear(&mut self, cpu: Cpu) {
        self.counters.cleared += 1;
        self.state(cpu).member = false;
    }

    /// `cpu` stops and waits for the line.
    fn access(&mut self, cpu: Cpu, activity: Activity, access: Access) {
        self.begin(cpu, activity, 0.0);
        self.request(cpu, access);
    }

    fn request(&mut self, cpu: Cpu, access: Access) {
        self.state(cpu).requested = self.now;
        match self.line.request(self.now, cpu, access) {
            Some(grant) => self.book(grant),
            None => self.serve(),
        }
    }

    fn serve(&mut self) {
        while let Some(grant) = self.line.grant(self.now) {
            self.book(grant);
        }
    }

    fn book(&mut self, grant: Grant) {
        let state = &self.cpus[grant.cpu as usize];
        self.counters.access(&grant, state.requested);
        if state.activity.is_switch() {
            self.counters.sample(&grant, state.requested);
        }
        self.at(grant.done, Event::Granted { cpu: grant.cpu });
    }

    /// `cpu` now does something else. That may change how fast its sibling runs.
    fn begin(&mut self, cpu: Cpu, activity: Activity, cycles: f64) {
        self.settle(cpu);
        let state = self.state(cpu);
        state.activity = activity;
        state.remaining = cycles;
        let sibling = self.siblings[cpu as usize];
        let beside = sibling.is_some_and(|sibling| self.state(sibling).activity.executes());
        self.execute(cpu, self.speed(beside));
        if let Some(sibling) = sibling {
            let speed = self.speed(activity.executes());
            if self.state(sibling).speed != speed {
                self.settle(sibling);
                self.execute(sibling, speed);
            }
        }
    }

    fn speed(&self, beside_a_busy_sibling: bool) -> f64 {
        if beside_a_busy_sibling { 1.0 } else { self.parameters.alone_speed }
    }

    /// From now on at this speed. What was going to end before ends at another time.
    fn execute(&mut self, cpu: Cpu, speed: f64) {
        let now = self.now;
        let state = self.state(cpu);
        state.speed = speed;
        state.execution += 1;
        if matches!(state.activity, Activity::Work | Activity::Schedule) {
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
        if !state.activity.is_away() {
            self.counters.present += elapsed;
        }
    }

    fn settle_all(&mut self) {
        (0..self.parameters.cpus).for_each(|cpu| self.settle(cpu));
    }

    fn at(&mut self, time: Cycles, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }
}

/// For each CPU the other one of its core.
fn siblings(topology: &Topology) -> Vec<Option<Cpu>> {
    let core = |cpu| topology.place(cpu).core;
    let sibling =
        |cpu| (0..topology.cpus()).find(|other| *other != cpu && core(*other) == core(cpu));
    (0..topology.cpus()).map(sibling).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Arbitration, Source};
    use super::*;

    fn run(policy: MaskPolicy, change: impl FnOnce(&mut Parameters)) -> Outcome {
        let mut parameters = Parameters { switches_per_cpu: 300, ..Parameters::default() };
        change(&mut parameters);
        simulate(&parameters, policy, 1).unwrap()
    }

    fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
        let error = value / expected - 1.0;
        assert!(error.abs() <= tolerance, "{what}: {value}, expected {expected}");
    }

    #[test]
    fn one_cpu_owns_the_line_forever() {
        let alone = run(MaskPolicy::SetAlways, |parameters| parameters.cpus = 1);
        assert_eq!(alone.transfers_per_second, 0.0);
        assert_eq!(alone.latency, Some(13.0), "the locked instruction");
        let two = run(MaskPolicy::SetAlways, |parameters| parameters.cpus = 2);
        assert!(two.transfers_per_second > 0.0);
    }

    #[test]
    fn a_line_that_is_never_cleared_never_moves() {
        let never = run(MaskPolicy::TestFirst, |parameters| parameters.idle_share = 0.0);
        assert_eq!((never.cleared, never.transfers_per_second), (0, 0.0));
        let sometimes = run(MaskPolicy::TestFirst, |parameters| parameters.idle_share = 0.01);
        assert!(sometimes.cleared > 0 && sometimes.transfers_per_second > 0.0);
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
        let expected = (90.0 * 552.0 + 28.0 * 134.0) / 119.0 + 13.0;
        assert_near("latency", outcome.latency.unwrap(), expected, 0.02);
    }

    /// The closed queue: N CPUs that think for Z and are served for S each. A cycle cannot be
    /// shorter than N S, nor than Z + S, and is N S if the line never rests.
    #[test]
    fn the_latency_obeys_the_bounds_of_a_closed_queue() {
        for cpus in [15, 60, 90, 120] {
            let mut thinking = 0.0;
            let outcome = run(MaskPolicy::SetAlways, |parameters| {
                parameters.cpus = cpus;
                parameters.alone_speed = 1.0;
                parameters.idle_share = 0.0;
                parameters.work_cycles = 30_000.0;
                thinking = parameters.work_cycles + parameters.scheduler_cycles;
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
            assert_near("Little's law", population, f64::from(cpus), 0.01);
        }
        assert!(
            run(MaskPolicy::SetAlways, |it| it.work_cycles = 30_000.0).line_busy > 0.999,
            "saturated"
        );
    }

    /// If cores were not shared, throughput would be what the scheduler leaves.
    #[test]
    fn without_siblings_the_gain_is_the_share_that_is_won_back() {
        let [before, after] = [MaskPolicy::SetAlways, MaskPolicy::TestFirst].map(|policy| {
            run(policy, |parameters| (parameters.alone_speed, parameters.idle_share) = (1.0, 0.0))
        });
        let expected = (1.0 - after.scheduler_share) / (1.0 - before.scheduler_share);
        assert_near("gain", after.throughput / before.throughput, expected, 0.005);
    }

    /// Where the line is what limits the program, faster siblings only come back to the queue
    /// earlier.
    #[test]
    fn at_a_saturated_line_faster_siblings_wait_longer() {
        let at = |alone_speed| {
            run(MaskPolicy::SetAlways, |it| {
                (it.alone_speed, it.work_cycles) = (alone_speed, 40_000.0)
            })
        };
        let (slow, fast) = (at(1.0), at(1.9));
        assert!(slow.line_busy > 0.99, "{}", slow.line_busy);
        assert!(fast.latency.unwrap() > 1.3 * slow.latency.unwrap(), "{fast:#?}");
        assert_near("throughput", fast.throughput, slow.throughput, 0.02);
    }

    #[test]
    fn a_waiting_thread_leaves_its_core_to_the_sibling() {
        let throughput = |cpus| run(MaskPolicy::TestFirst, |it| it.cpus = cpus).throughput;
        let (lone, shared) = (throughput(60), throughput(120));
        assert_near("one thread for each core", lone / shared, 1.9 / 2.0, 0.01);
    }

    #[test]
    fn leaving_lazily_saves_the_way_out_and_back() {
        let among_processes = |policy| run(policy, |parameters| parameters.foreign_share = 0.1);
        let (eager, lazy) =
            (among_processes(MaskPolicy::TestFirst), among_processes(MaskPolicy::LeaveLazily));
        assert!(eager.cleared > 100 * lazy.cleared.max(1), "{} {}", eager.cleared, lazy.cleared);
        assert!(lazy.transfers_per_second < eager.transfers_per_second / 10.0);
        assert!(lazy.needless_interrupts > eager.needless_interrupts, "the price of stale bits");
    }

    #[test]
    fn trimming_more_often_clears_more() {
        let cleared = |trim_interval_ns| {
            run(MaskPolicy::LeaveLazily, |parameters| {
                parameters.foreign_share = 0.1;
                parameters.trim_interval_ns = trim_interval_ns;
            })
            .cleared
        };
        assert!(cleared(0.0) > 2 * cleared(1e9), "{} {}", cleared(0.0), cleared(1e9));
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome() {
        let parameters = Parameters { switches_per_cpu: 50, ..Parameters::default() };
        let outcome = |seed| simulate(&parameters, MaskPolicy::TestFirst, seed).unwrap();
        assert_eq!(outcome(1), outcome(1));
        assert_ne!(outcome(1), outcome(2));
    }

    #[test]
    fn every_access_of_a_switch_is_in_the_books() {
        let outcome = run(MaskPolicy::SetAlways, |parameters| parameters.idle_share = 0.0);
        let accesses: u64 = outcome.sources.iter().map(|(_, count)| count).sum();
        // Those that wait at both ends of the measurement make the difference.
        assert!(accesses.abs_diff(outcome.switches) <= 120, "{accesses} {}", outcome.switches);
        let (farthest, count) = outcome.sources[4];
        assert_eq!(farthest, Source::ModifiedInMachine);
        assert_near("share of other sockets", count as f64 / accesses as f64, 90.0 / 119.0, 0.02);
    }
}
