//! Simulation of one process of a workload, from start to end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Effects, HUGE_PAGE, Rules, Scanner, Settings, SkipReason};

use super::contract::{Contract, ScanBreach, ScanViolation};
use super::locality::{Locality, Toucher};
use super::outcome::{Counts, Outcome, Second};
use super::pages::{Node, Pages};
use super::parameters::Parameters;
use super::scan_policy::{KernelScan, ScanPolicy};
use super::setup::Setup;
use super::thread::{Fault, Thread};
use super::tiers;
use super::weights::Weights;
use super::workload::Placement;
use super::workload::layout::{MAIN, PAGE, Part, Used, regions};
use crate::random::Random;
use crate::time::{Ns, SECOND, US};

/// Approximate time to arm an entry, or to check a region. It only affects the rest after a pass.
const STEP: Ns = US;

/// Range of the first thread ID of a process; its threads have consecutive IDs.
const FIRST_IDS: std::ops::Range<u64> = 2000..32_000;

/// An event in the simulation of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread returns to the default policy.
    Prepared(u32),
    /// A thread touches an armed page, if the phase is still this one.
    Touch { phase: usize, thread: u32, region: usize, page: usize },
    /// A worker moves to another node.
    Move(u32),
    /// A thread checks if a scan pass is due.
    Look(u32),
    /// A second is over.
    Second,
}

struct Run<'a, S> {
    settings: Settings,
    setup: &'a Setup,
    random: Random,
    now: Ns,
    events: BinaryHeap<Reverse<(Ns, Event)>>,
    scan: S,
    contract: Contract,
    /// The first breach of the scan's contract, which ends the run.
    violation: Option<ScanViolation>,
    /// Start address of each region, in ascending order.
    starts: Vec<u64>,
    uses: Vec<Used>,
    next_scan: Option<Ns>,
    pages: Pages,
    resident: u64,
    threads: Vec<Thread>,
    weights: Weights,
    /// Index of the current phase; completed rounds in it, and the time at which they were
    /// computed.
    phase: usize,
    rounds: f64,
    rounds_at: Ns,
    locality: Locality,
    /// State of the memory tiers; `None` if the rules or the machine have no tiers.
    tiers: Option<tiers::Placement>,
    /// Duration of a round with the current page locations, in nanoseconds.
    round_ns: f64,
    outcome: Outcome,
}

/// Progress of the workers.
enum Progress {
    /// They are within the phase.
    Within,
    /// They ended the phase at this time, and another one follows.
    PhaseOver(Ns),
    /// They ended the last phase.
    Over,
}

/// Simulates the process with this number, with or without memory tiers. The same arguments give
/// the same outcome.
pub fn process(setup: &Setup, rules: &Rules, tiers: bool, number: u32, seed: u64) -> Outcome {
    let outcome = process_by(setup, KernelScan::new(rules), tiers, number, seed);
    outcome.expect("the rules of Linux keep the contract")
}

/// Simulates like [`process`], by any scan.
///
/// # Errors
///
/// Returns the violation if the scan breaks its [contract](ScanPolicy#contract).
pub fn process_by(
    setup: &Setup,
    scan: impl ScanPolicy,
    tiers: bool,
    number: u32,
    seed: u64,
) -> Result<Outcome, ScanViolation> {
    let mut run = Run::new(setup, scan, tiers, number, seed);
    run.begin();
    run.all();
    run.violation.map_or(Ok(run.outcome), Err)
}

impl<'a, S: ScanPolicy> Run<'a, S> {
    fn new(setup: &'a Setup, mut scan: S, tiers: bool, number: u32, seed: u64) -> Run<'a, S> {
        let Setup { workload, system, parameters, .. } = setup;
        let settings = setup.scan;
        let placement = || tiers::Placement::new(setup.tiers, &settings, system);
        let tiers = if tiers { placement() } else { None };
        let mut random = Random::new(seed);
        let parts = regions(parameters, workload, random.below(u64::from(u16::MAX)));
        let first = FIRST_IDS.start + random.below(FIRST_IDS.end - FIRST_IDS.start);
        let bound = workload.preparation.bound;
        let thread = |n| Thread::new(n, first as u32, system, bound, parameters);
        let threads: Vec<Thread> = (MAIN..=workload.threads).map(thread).collect();
        let locality = Locality::new(workload, &workload.phases[0], system.all_nodes());
        let pages = Pages::new(&parts, |part, at| place(setup, number, &locality, part, at));
        let resident = parts.iter().map(|part| part.resident * PAGE).sum();
        let uses = parts.iter().map(|part| part.used).collect();
        let starts = parts.iter().map(|part| part.range.start).collect();
        let ranges = parts.iter().map(|part| part.range.clone()).collect();
        scan.map(parts.into_iter().map(|Part { range, traits, .. }| (range, traits)).collect());
        Run {
            settings,
            setup,
            random,
            now: 0,
            events: BinaryHeap::new(),
            scan,
            contract: Contract::new(ranges, &settings),
            violation: None,
            starts,
            uses,
            next_scan: None,
            pages,
            resident,
            threads,
            weights: Weights::new(system.all_nodes()),
            phase: 0,
            rounds: 0.0,
            rounds_at: setup.prepared_at(),
            locality,
            tiers,
            round_ns: 0.0,
            outcome: Outcome::default(),
        }
    }

    fn begin(&mut self) {
        self.begin_phase(0);
        self.schedule(SECOND, Event::Second);
        let Setup { workload, system, parameters, .. } = self.setup;
        for n in MAIN..=workload.threads {
            self.schedule_look(n);
            // A thread that gets more of a CPU ends the preparation earlier.
            let mean = self.setup.cpu_share() * (1.0 + parameters.least_share) / 2.0;
            let pace = if n == MAIN { 1.0 } else { self.share(n) / mean };
            let ready = self.setup.prepared_at() as f64 / pace;
            self.schedule(ready as Ns, Event::Prepared(n));
            if n != MAIN && system.nodes() > 1 {
                self.schedule_move(n);
            }
        }
    }

    fn all(&mut self) {
        while self.violation.is_none() {
            let Some(Reverse((time, event))) = self.events.pop() else { break };
            match self.advance(time) {
                Progress::Within => {
                    self.now = time;
                    self.happen(event);
                }
                Progress::PhaseOver(at) => {
                    self.events.push(Reverse((time, event)));
                    self.now = at;
                    self.begin_phase(self.phase + 1);
                }
                Progress::Over => break,
            }
        }
        let counts = &mut self.outcome.counts;
        counts.sequences = self.scan.sequence() as u64;
        counts.pte_updates = self.pages.pte_updates;
        counts.pmd_updates = self.pages.pmd_updates;
    }

    /// Begins a phase: counts its uses, and schedules touches of the armed pages by its users.
    fn begin_phase(&mut self, phase: usize) {
        let Setup { workload, system, .. } = self.setup;
        (self.phase, self.rounds) = (phase, 0.0);
        self.locality = Locality::new(workload, &workload.phases[phase], system.all_nodes());
        for region in 0..self.uses.len() {
            let Used::Memory(memory) = self.uses[region] else { continue };
            for index in 0..self.pages.regions[region].len() {
                let node = self.pages.regions[region][index].node;
                self.locality.add(memory, &self.bytes_of(region, index), node);
            }
        }
        self.weigh();
        for (region, page) in self.pages.all_armed() {
            self.schedule_touch(region, page);
        }
    }

    /// Returns the bytes of an entry, counted from the start of its region.
    fn bytes_of(&self, region: usize, index: usize) -> Range<u64> {
        let page = &self.pages.regions[region][index];
        let start = page.start - self.starts[region];
        start..start + page.pages * PAGE
    }

    /// Updates the duration of a round after pages or threads have moved. All workers are equally
    /// fast: the bandwidth of the process's memory limits them, so the mean distance counts.
    fn weigh(&mut self) {
        let Setup { workload, system, .. } = self.setup;
        let speed = system.speed / f64::from(workload.processes) / SECOND as f64;
        let cost = self.locality.cost(system, |n| self.threads[n as usize].node);
        self.round_ns = cost / speed;
    }

    /// Advances the workers to `time`, or to the end of the phase.
    fn advance(&mut self, time: Ns) -> Progress {
        let phases = &self.setup.workload.phases;
        let left = f64::from(phases[self.phase].rounds) - self.rounds;
        let rounds = time.saturating_sub(self.rounds_at) as f64 / self.round_ns;
        if rounds < left {
            self.rounds += rounds;
            self.rounds_at = self.rounds_at.max(time);
            return Progress::Within;
        }
        self.rounds_at += (left * self.round_ns) as Ns;
        self.outcome.elapsed = self.rounds_at;
        if self.phase + 1 < phases.len() {
            Progress::PhaseOver(self.rounds_at)
        } else {
            Progress::Over
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Prepared(n) => self.threads[n as usize].balancing = true,
            Event::Touch { phase, thread, region, page } if phase == self.phase => {
                self.touch(thread, region, page);
            }
            // Ignores a touch of an earlier phase, whose users may differ.
            Event::Touch { .. } => {}
            Event::Move(n) => self.move_worker(n),
            Event::Look(n) => self.look(n),
            Event::Second => self.note(),
        }
    }

    fn schedule(&mut self, time: Ns, event: Event) {
        self.events.push(Reverse((time, event)));
    }

    /// Schedules the thread's next check, when it has run for its period. Draws its CPU share until
    /// then, and the phase of the CPU's tick that detects it.
    fn schedule_look(&mut self, n: u32) {
        let share = self.share(n);
        if share == 0.0 {
            return;
        }
        let phase = self.random.below(self.setup.parameters.tick);
        let thread = &mut self.threads[n as usize];
        let due = thread.clock.next_look().max(thread.run_time);
        let wait = (due - thread.run_time) as f64 / share;
        thread.run_time = due + (phase as f64 * share) as Ns;
        let begin = if n == MAIN { self.setup.prepared_at() } else { 0 };
        self.schedule(self.now.max(begin) + wait as Ns + phase, Event::Look(n));
    }

    /// Returns a random CPU share of a thread.
    fn share(&mut self, n: u32) -> f64 {
        let Parameters { least_share, main_share, .. } = self.setup.parameters;
        let share = least_share + (1.0 - least_share) * self.random.unit();
        if n == MAIN { share * main_share } else { share * self.setup.cpu_share() }
    }

    fn schedule_move(&mut self, n: u32) {
        let after = self.random.exponential(self.setup.parameters.stay as f64);
        self.schedule(self.now + after as Ns, Event::Move(n));
    }

    fn note(&mut self) {
        let covered = (self.pages.seen * PAGE) as f64 / self.resident as f64;
        let local = self.locality.local_share(|n| self.threads[n as usize].node);
        self.outcome.seconds.push(Second { covered, local });
        self.schedule(self.now + SECOND, Event::Second);
    }

    fn look(&mut self, n: u32) {
        let shortest = self.shortest_period();
        let thread = &mut self.threads[n as usize];
        thread.clock.looked();
        if n == MAIN && !thread.has_looked {
            // Only a thread without a start delay begins with the period that fits its process.
            thread.clock.period = shortest;
        }
        thread.has_looked = true;
        let period = thread.clock.period;
        match self.next_scan {
            // The first check of a process only sets the start of the scan delay.
            None => self.next_scan = Some(self.now + nanoseconds(self.settings.scan_delay)),
            Some(due) if self.now >= due => {
                self.next_scan = Some(self.now + period);
                let took = self.scan(n);
                self.threads[n as usize].clock.scanned(took, self.setup.parameters.tick);
            }
            Some(_) => {}
        }
        self.schedule_look(n);
    }

    /// Performs a scan pass. Returns its duration.
    fn scan(&mut self, n: u32) -> Ns {
        let Thread { id, balancing, .. } = self.threads[n as usize];
        let threads = self.setup.workload.threads + 1;
        let scanner = Scanner { thread: id, balances: balancing, threads };
        let (pages, counts, now) = (&mut self.pages, &mut self.outcome.counts, self.now);
        let mut effects = Armed { starts: &self.starts, pages, counts, now, steps: 0 };
        let (now, scan, settings) = (Duration::from_nanos(now), &mut self.scan, &self.settings);
        let pass = |checked: &mut dyn Effects| scan.pass(scanner, now, settings, checked);
        let made = self.contract.pass(&mut effects, pass);
        let decisions = effects.steps;
        self.outcome.counts.passes += 1;
        if let Err(breach) = made.and_then(|()| self.contract.passed(self.scan.sequence())) {
            self.violated(id, breach);
        }
        let armed = std::mem::take(&mut self.pages.armed);
        let steps = decisions + armed.len();
        for (region, page) in armed {
            self.schedule_touch(region, page);
        }
        let took = STEP * steps as u64;
        self.outcome.counts.scan_ns += took;
        self.demote();
        took
    }

    /// Ends the run after this event.
    #[cold]
    fn violated(&mut self, thread: u32, breach: ScanBreach) {
        let (at, pass) = (self.now, self.outcome.counts.passes);
        self.violation = Some(ScanViolation { at, pass, thread, breach });
    }

    /// Demotes pages that have been armed for long to nodes without CPUs.
    fn demote(&mut self) {
        let Some(mut tiers) = self.tiers.take() else { return };
        tiers.adapt(self.now);
        for (region, index) in self.pages.all_armed() {
            let page = &self.pages.regions[region][index];
            let target = tiers.demotes(page.node, page.armed_at, self.now, page.pages * PAGE);
            if let Some(node) = target {
                self.outcome.counts.pages_demoted += page.pages;
                self.migrate(region, index, node);
            }
        }
        self.tiers = Some(tiers);
    }

    /// Returns the shortest period between two passes over the process's memory.
    fn shortest_period(&self) -> Ns {
        nanoseconds(self.settings.periods(self.resident).0)
    }

    /// Schedules the next access to an armed page: within a round, and earlier if many workers use
    /// the page.
    fn schedule_touch(&mut self, region: usize, page: usize) {
        let bytes = self.bytes_of(region, page);
        let toucher = match self.uses[region] {
            Used::Never => None,
            Used::Stack(thread) => Some(Toucher { thread, among: 1 }),
            Used::Memory(memory) => self.locality.toucher(memory, &bytes, &mut self.random),
        };
        let Some(Toucher { thread, among }) = toucher else { return };
        let wait = self.random.below(((self.round_ns / f64::from(among)) as Ns).max(1));
        let from = self.now.max(self.setup.prepared_at());
        self.schedule(from + wait, Event::Touch { phase: self.phase, thread, region, page });
    }

    /// Handles a hint fault in the kernel's order: the page moves, the thread checks its placement,
    /// and the fault is counted.
    fn touch(&mut self, n: u32, region: usize, index: usize) {
        let thread = &self.threads[n as usize];
        let page = &mut self.pages.regions[region][index];
        page.armed = false;
        self.scan.used(self.starts[region], thread.id);
        let (pages, home, here) = (page.pages, page.node, thread.node);
        let last = page.last.replace((n, here));
        let local = home == here;
        let moves = match self.tiers.as_mut().filter(|tiers| tiers.is_slow(home)) {
            Some(tiers) => tiers.promotes(page.armed_at, self.now, pages * PAGE),
            None => !local && thread.attracts(n, home, last, &self.weights),
        };
        if moves {
            let is_promoted = usize::from(home) >= self.setup.system.nodes();
            self.outcome.counts.pages_promoted += if is_promoted { pages } else { 0 };
            self.migrate(region, index, here);
        }
        self.outcome.counts.hint_faults += 1;
        self.outcome.counts.hint_faults_local += u64::from(local);
        self.place(n);
        let node = if moves { here } else { home };
        let private = last.is_none_or(|(other, _)| other == n);
        let thread = &mut self.threads[n as usize];
        thread.count(&Fault { pages, local, private });
        thread.found(pages, node);
        self.weights.count(self.scan.sequence(), here, node, pages);
    }

    /// Adapts the period of a trapping thread at intervals, and moves the thread to its preferred
    /// node.
    fn place(&mut self, n: u32) {
        let Parameters { adaptation, put_off, go_home, .. } = self.setup.parameters;
        let thread = &mut self.threads[n as usize];
        if !thread.looks_for_its_place(self.now) {
            return;
        }
        let sequence = self.scan.sequence();
        let doubled = thread.begin_sequence(sequence, &self.settings, self.resident, adaptation);
        if doubled && put_off {
            self.next_scan = Some(self.now + thread.clock.period);
        }
        let home = if go_home { thread.home(self.now) } else { None };
        if let Some(home) = home.filter(|home| *home != thread.node) {
            self.change_node(n, home);
        }
    }

    fn migrate(&mut self, region: usize, index: usize, node: Node) {
        let bytes = self.bytes_of(region, index);
        let page = &mut self.pages.regions[region][index];
        let before = std::mem::replace(&mut page.node, node);
        self.outcome.counts.pages_migrated += page.pages;
        if let Used::Memory(memory) = self.uses[region] {
            self.locality.remove(memory, &bytes, before);
            self.locality.add(memory, &bytes, node);
            self.weigh();
        }
    }

    /// Moves a worker to a random other node, as the scheduler would. If the worker is on its
    /// preferred node, the share `reluctance` of these moves is omitted.
    fn move_worker(&mut self, n: u32) {
        self.schedule_move(n);
        let must = self.random.unit() >= self.setup.parameters.reluctance;
        if self.threads[n as usize].is_at_home() && !must {
            return;
        }
        let nodes = self.setup.system.nodes() as u64;
        let further = 1 + self.random.below(nodes - 1);
        let node = (u64::from(self.threads[n as usize].node) + further) % nodes;
        self.change_node(n, node as Node);
    }

    fn change_node(&mut self, n: u32, node: Node) {
        let shortest = self.shortest_period();
        let thread = &mut self.threads[n as usize];
        if thread.change_node(node) && self.setup.parameters.hurry_after_move {
            thread.clock.period = shortest;
        }
        self.weigh();
    }
}

/// Returns the node of a page after the preparation.
fn place(setup: &Setup, process: u32, locality: &Locality, part: &Part, at: u64) -> Node {
    let nodes = setup.system.nodes() as u64;
    let in_turn = (at / HUGE_PAGE % nodes) as Node;
    match (setup.workload.preparation.place, part.used) {
        (Placement::Interleaved, Used::Memory(_)) => in_turn,
        (Placement::Owner, Used::Memory(memory)) => {
            let owner = locality.owner(memory, at - part.range.start);
            owner.map_or(in_turn, |worker| (u64::from(worker) % nodes) as Node)
        }
        _ => (u64::from(process) % nodes) as Node,
    }
}

/// The effects of a pass on a process.
struct Armed<'a> {
    starts: &'a [u64],
    pages: &'a mut Pages,
    counts: &'a mut Counts,
    now: Ns,
    /// Number of noted decisions and of armed ranges.
    steps: usize,
}

impl Effects for Armed<'_> {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        self.steps += 1;
        let index = self.starts.partition_point(|&start| start < region);
        self.pages.arm(index, part, self.now)
    }

    fn note(&mut self, _: u64, reason: SkipReason) {
        self.steps += 1;
        self.counts.reasons[reason as usize] += 1;
    }
}

fn nanoseconds(time: Duration) -> Ns {
    time.as_nanos() as Ns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(rules: &Rules, seed: u64) -> Outcome {
        process(&Setup::published(), rules, false, 0, seed)
    }

    #[test]
    fn the_same_seed_gives_the_same_run_and_another_one_another() {
        let [first, again, other] = [3, 3, 4].map(|seed| outcome(&Rules::SELECTIVE, seed));
        assert_eq!((first.elapsed, &first.counts), (again.elapsed, &again.counts));
        assert_ne!((first.elapsed, &first.counts), (other.elapsed, &other.counts));
    }

    /// The reason for the series: memory that was never scanned has no active threads, and so is
    /// never scanned.
    #[test]
    fn without_the_series_nothing_is_ever_armed_and_with_it_everything_is() {
        let base = outcome(&Rules::BASE, 1);
        assert_eq!((base.counts.pmd_updates, base.counts.hint_faults), (0, 0));
        assert!(base.seconds.iter().all(|second| second.covered == 0.0));
        let selective = outcome(&Rules::SELECTIVE, 1);
        let last = selective.seconds.last().expect("a second");
        assert!(last.covered > 0.99 && last.local > 0.8, "{last:?}");
        assert!(selective.elapsed < base.elapsed);
    }

    #[test]
    fn counts_fit_together() {
        let Outcome { counts, seconds, .. } = outcome(&Rules::SELECTIVE, 2);
        assert!(counts.hint_faults_local <= counts.hint_faults);
        assert!(counts.hint_faults <= counts.pte_updates + counts.pmd_updates);
        assert!(counts.pages_migrated > 0 && counts.sequences > 0);
        assert!(counts.reasons[SkipReason::IgnorePidInactive as usize] <= counts.passes);
        assert!(seconds.windows(2).all(|pair| pair[0].covered <= pair[1].covered));
    }

    /// Without remote costs, migration gains nothing, so the model itself has no gain.
    #[test]
    fn with_nothing_remote_there_is_nothing_to_gain() {
        let mut near = Setup::published();
        near.set("remote_cost", 1.0).expect("a number");
        let [base, selective] = [Rules::BASE, Rules::SELECTIVE]
            .map(|rules| process(&near, &rules, false, 0, 1).elapsed_s());
        assert!((base - selective).abs() < 1e-6, "{base} {selective}");
    }

    /// Returns a machine with a node without CPUs, and memory that is unused in its second phase.
    fn archive() -> Setup {
        let workload = super::super::Workload::preset("archive").expect("a preset");
        let machine = crate::machine::Machine::parse(
            "base = \"cascade-lake\"\nname = \"slow\"\n[topology]\nmemory_only_nodes = 1\n",
        );
        let mut setup = Setup::from_machine(&machine.expect("a machine"), workload);
        setup.set("cold_after_s", 20.0).expect("a number");
        setup.set("tiers_mib_s", 512.0).expect("a number");
        setup
    }

    #[test]
    fn what_rests_goes_to_the_slow_node_and_returns_when_it_is_used() {
        let with = |tiers: bool| process(&archive(), &Rules::LINUX_6_12, tiers, 0, 1);
        let (with, without) = (with(true), with(false));
        let archive = 6144 * (1 << 20) / PAGE;
        let Counts { pages_demoted: demoted, pages_promoted: promoted, .. } = with.counts;
        assert!(demoted > archive * 9 / 10, "{demoted} of {archive}");
        assert!(promoted > archive / 2 && promoted <= demoted, "{promoted} of {demoted}");
        assert_eq!((without.counts.pages_demoted, without.counts.pages_promoted), (0, 0));
        assert!(with.elapsed > without.elapsed, "slow memory takes longer");
    }

    #[test]
    fn no_more_returns_in_a_second_than_the_rate_allows() {
        let mut slow = archive();
        slow.set("tiers_mib_s", 8.0).expect("a number");
        let outcome = process(&slow, &Rules::LINUX_6_12, true, 0, 1);
        let seconds = outcome.elapsed_s() as u64 + 1;
        let most = seconds * 8 * (1 << 20) / PAGE;
        let Counts { pages_demoted: demoted, pages_promoted: promoted, .. } = outcome.counts;
        assert!(demoted > most / 4 && demoted <= most, "{demoted} of {most}");
        assert!(promoted <= most, "{promoted} of {most}");
        let fast = process(&archive(), &Rules::LINUX_6_12, true, 0, 1).counts;
        assert!(fast.pages_demoted > most, "with a greater rate more moves");
    }

    #[test]
    fn without_slow_nodes_the_tiers_change_nothing() {
        let of = |tiers| process(&Setup::published(), &Rules::LINUX_6_12, tiers, 0, 1);
        assert_eq!((of(true).elapsed, of(true).counts), (of(false).elapsed, of(false).counts));
    }
}
