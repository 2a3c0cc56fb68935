//! One process of the benchmark from its start to its end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Effects, Reason, Rules, Scan, Scanner, Settings};

use super::outcome::{Counts, Outcome, Second};
use super::pages::{Node, Pages};
use super::thread::{Fault, Thread};
use super::workload::{MAIN, PAGE, Parameters, Part, Use, regions};
use crate::random::Random;
use crate::time::{Ns, SECOND, US};

/// Arming an entry, or looking at a region, takes about this long. Only the rest after a pass
/// follows from it.
const STEP: Ns = US;

/// Processes get consecutive thread IDs, the first one from this range.
const FIRST_IDS: std::ops::Range<u64> = 2000..32_000;

/// What happens to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread returns to the default policy.
    Prepared(u32),
    /// A thread touches an armed page.
    Touch { thread: u32, region: usize, page: usize },
    /// A worker moves to another node.
    Move(u32),
    /// A thread looks whether a pass is due.
    Look(u32),
    /// A second is over.
    Second,
}

struct Run<'a> {
    settings: Settings,
    rules: &'a Rules,
    parameters: &'a Parameters,
    random: Random,
    now: Ns,
    events: BinaryHeap<Reverse<(Ns, Event)>>,
    scan: Scan,
    /// Where each region starts, by ascending address.
    starts: Vec<u64>,
    uses: Vec<Use>,
    next_scan: Option<Ns>,
    pages: Pages,
    resident: u64,
    threads: Vec<Thread>,
    /// Rounds done, and when that was so.
    rounds: f64,
    rounds_at: Ns,
    /// Pages of the zeroed memory on the node of their worker.
    local: u64,
    outcome: Outcome,
}

/// Simulates one process, whose preparation binds its memory to `node`. The same arguments give the
/// same outcome.
pub fn process(parameters: &Parameters, rules: &Rules, node: u8, seed: u64) -> Outcome {
    let mut run = Run::new(parameters, rules, node, seed);
    run.begin();
    run.all();
    run.outcome
}

impl<'a> Run<'a> {
    fn new(parameters: &'a Parameters, rules: &'a Rules, node: Node, seed: u64) -> Run<'a> {
        let mut random = Random::new(seed);
        let parts = regions(parameters, random.below(u64::from(u16::MAX)));
        let first = FIRST_IDS.start + random.below(FIRST_IDS.end - FIRST_IDS.start);
        let threads = (MAIN..=parameters.workers).map(|n| Thread::new(n, first as u32, parameters));
        let pages = Pages::new(&parts, node);
        let resident = parts.iter().map(|part| part.resident * PAGE).sum();
        let uses = parts.iter().map(|part| part.used).collect();
        let starts = parts.iter().map(|part| part.range.start).collect();
        let mut scan = Scan::new();
        scan.remap(parts.into_iter().map(|Part { range, traits, .. }| (range, traits)));
        Run {
            settings: Settings::default(),
            rules,
            parameters,
            random,
            now: 0,
            events: BinaryHeap::new(),
            scan,
            starts,
            uses,
            next_scan: None,
            pages,
            resident,
            threads: threads.collect(),
            rounds: 0.0,
            rounds_at: parameters.preparation,
            local: 0,
            outcome: Outcome::default(),
        }
    }

    fn begin(&mut self) {
        self.local = self.count_local();
        self.schedule(SECOND, Event::Second);
        for n in MAIN..=self.parameters.workers {
            self.schedule_look(n);
            // A thread that gets more of a CPU is ready sooner.
            let mean = (1.0 + self.parameters.least_share) / 2.0;
            let pace = if n == MAIN { 1.0 } else { self.share(n) / mean };
            let ready = self.parameters.preparation as f64 / pace;
            self.schedule(ready as Ns, Event::Prepared(n));
            if n != MAIN {
                self.schedule_move(n);
            }
        }
    }

    fn all(&mut self) {
        while let Some(Reverse((time, event))) = self.events.pop() {
            if self.zero_until(time) {
                break;
            }
            self.now = time;
            self.happen(event);
        }
        let counts = &mut self.outcome.counts;
        counts.sequences = self.scan.sequence() as u64;
        counts.pte_updates = self.pages.pte_updates;
        counts.pmd_updates = self.pages.pmd_updates;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Prepared(n) => self.threads[n as usize].balancing = true,
            Event::Touch { thread, region, page } => self.touch(thread, region, page),
            Event::Move(n) => self.move_worker(n),
            Event::Look(n) => self.look(n),
            Event::Second => self.note(),
        }
    }

    fn schedule(&mut self, time: Ns, event: Event) {
        self.events.push(Reverse((time, event)));
    }

    /// The thread looks when it has run for its period. How much of a CPU it gets until then is
    /// drawn anew, and the tick that notices comes at the CPU's own phase.
    fn schedule_look(&mut self, n: u32) {
        let share = self.share(n);
        if share == 0.0 {
            return;
        }
        let phase = self.random.below(self.parameters.tick);
        let thread = &mut self.threads[n as usize];
        let due = thread.clock.next_look().max(thread.run_time);
        let wait = (due - thread.run_time) as f64 / share;
        thread.run_time = due + (phase as f64 * share) as Ns;
        let begin = if n == MAIN { self.parameters.preparation } else { 0 };
        self.schedule(self.now.max(begin) + wait as Ns + phase, Event::Look(n));
    }

    /// The share of a CPU that a thread gets.
    fn share(&mut self, n: u32) -> f64 {
        let least = self.parameters.least_share;
        let share = least + (1.0 - least) * self.random.unit();
        if n == MAIN { share * self.parameters.main_share } else { share }
    }

    fn schedule_move(&mut self, n: u32) {
        let after = self.random.exponential(self.parameters.stay as f64);
        self.schedule(self.now + after as Ns, Event::Move(n));
    }

    fn note(&mut self) {
        let covered = (self.pages.seen * PAGE) as f64 / self.resident as f64;
        self.outcome.seconds.push(Second { covered, local: self.local_share() });
        self.schedule(self.now + SECOND, Event::Second);
    }

    /// Rounds a nanosecond. All workers are as fast as the memory of the process is local in the
    /// mean: they are bound by its bandwidth.
    fn pace(&self) -> f64 {
        let Parameters { remote_cost, speed, processes, memory, .. } = *self.parameters;
        let cost = |local: f64| local + (1.0 - local) * remote_cost;
        let speed = speed / f64::from(processes) * cost(0.5) / cost(self.local_share());
        speed / memory as f64 / SECOND as f64
    }

    fn local_share(&self) -> f64 {
        (self.local * PAGE) as f64 / self.parameters.memory as f64
    }

    /// Lets the workers zero until `time`. Returns whether they are done by then.
    fn zero_until(&mut self, time: Ns) -> bool {
        let pace = self.pace();
        let left = f64::from(self.parameters.rounds) - self.rounds;
        let rounds = pace * time.saturating_sub(self.rounds_at) as f64;
        self.outcome.elapsed = self.rounds_at + (left / pace) as Ns;
        self.rounds += rounds;
        self.rounds_at = self.rounds_at.max(time);
        rounds >= left
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
            // The first look of a process only begins the count.
            None => self.next_scan = Some(self.now + nanoseconds(self.settings.scan_delay)),
            Some(due) if self.now >= due => {
                self.next_scan = Some(self.now + period);
                let took = self.scan(n);
                self.threads[n as usize].clock.scanned(took, self.parameters.tick);
            }
            Some(_) => {}
        }
        self.schedule_look(n);
    }

    /// A pass. Returns how long it took.
    fn scan(&mut self, n: u32) -> Ns {
        let Thread { id, balancing, .. } = self.threads[n as usize];
        let threads = self.parameters.workers + 1;
        let scanner = Scanner { thread: id, balances: balancing, threads };
        let (pages, counts) = (&mut self.pages, &mut self.outcome.counts);
        let mut effects = Armed { starts: &self.starts, pages, counts, steps: 0 };
        let now = Duration::from_nanos(self.now);
        self.scan.pass(scanner, now, &self.settings, self.rules, &mut effects);
        let decisions = effects.steps;
        self.outcome.counts.passes += 1;
        let armed = std::mem::take(&mut self.pages.armed);
        let steps = decisions + armed.len();
        for (region, page) in armed {
            self.schedule_touch(region, page);
        }
        STEP * steps as u64
    }

    /// The shortest period between two passes over the process's memory.
    fn shortest_period(&self) -> Ns {
        nanoseconds(self.settings.periods(self.resident).0)
    }

    /// The next access to a page that was just armed: within a round.
    fn schedule_touch(&mut self, region: usize, page: usize) {
        let thread = match self.uses[region] {
            Use::Unused => return,
            Use::Stack(thread) => thread,
            Use::Parts => {
                // A page across a border is touched by the worker that comes first.
                let (first, last) = self.workers_of(region, page);
                if self.random.below(2) == 0 { first } else { last }
            }
        };
        let wait = self.random.below((1.0 / self.pace()) as Ns);
        let from = self.now.max(self.parameters.preparation);
        self.schedule(from + wait, Event::Touch { thread, region, page });
    }

    /// The workers whose parts a page begins and ends in.
    fn workers_of(&self, region: usize, page: usize) -> (u32, u32) {
        let page = &self.pages.regions[region][page];
        let base = self.starts[region];
        let workers = self.parameters.workers;
        let part = self.parameters.memory.div_ceil(u64::from(workers.max(1)));
        let worker = |address: u64| (((address - base) / part) as u32 + 1).min(workers);
        (worker(page.start), worker(page.start + page.pages * PAGE - 1))
    }

    /// A hint fault.
    fn touch(&mut self, n: u32, region: usize, index: usize) {
        let thread = &mut self.threads[n as usize];
        let page = &mut self.pages.regions[region][index];
        page.armed = false;
        self.scan.used_by(self.starts[region], 1 << self.rules.width.bit(thread.id));
        let (pages, mut node, last) = (page.pages, page.node, page.last.replace((n, thread.node)));
        let local = node == thread.node;
        let private = last.is_none_or(|(other, _)| other == n);
        let (sequence, adaptation) = (self.scan.sequence(), self.parameters.adaptation);
        let doubled = thread.begin_sequence(sequence, &self.settings, self.resident, adaptation);
        if doubled && self.parameters.put_off {
            self.next_scan = Some(self.now + thread.clock.period);
        }
        thread.count(&Fault { pages, local, private });
        self.outcome.counts.hint_faults += 1;
        self.outcome.counts.hint_faults_local += u64::from(local);
        if !local && self.threads[n as usize].attracts(n, last) {
            node = self.threads[n as usize].node;
            self.migrate(region, index, node);
        }
        self.threads[n as usize].found(pages, node);
    }

    fn migrate(&mut self, region: usize, index: usize, node: Node) {
        self.local -= self.local_pages(region, index);
        self.pages.regions[region][index].node = node;
        self.local += self.local_pages(region, index);
        self.outcome.counts.pages_migrated += self.pages.regions[region][index].pages;
    }

    /// The pages of an entry that count as local: those of the zeroed memory, on the node of their
    /// worker.
    fn local_pages(&self, region: usize, index: usize) -> u64 {
        let page = &self.pages.regions[region][index];
        let (worker, _) = self.workers_of(region, index);
        let local =
            self.uses[region] == Use::Parts && page.node == self.threads[worker as usize].node;
        if local { page.pages } else { 0 }
    }

    fn count_local(&self) -> u64 {
        let regions = self.pages.regions.iter().enumerate();
        let entries =
            regions.flat_map(|(region, pages)| (0..pages.len()).map(move |i| (region, i)));
        entries.map(|(region, index)| self.local_pages(region, index)).sum()
    }

    fn move_worker(&mut self, n: u32) {
        let shortest = self.shortest_period();
        let thread = &mut self.threads[n as usize];
        if thread.change_node() && self.parameters.hurry_after_move {
            thread.clock.period = shortest;
        }
        self.local = self.count_local();
        self.schedule_move(n);
    }
}

/// What a pass does to a process.
struct Armed<'a> {
    starts: &'a [u64],
    pages: &'a mut Pages,
    counts: &'a mut Counts,
    /// What was noted, and the pieces that were armed.
    steps: usize,
}

impl Effects for Armed<'_> {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        self.steps += 1;
        let index = self.starts.partition_point(|&start| start < region);
        self.pages.arm(index, part)
    }

    fn note(&mut self, _: u64, reason: Reason) {
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
        process(&Parameters::default(), rules, 0, seed)
    }

    #[test]
    fn the_same_seed_gives_the_same_run_and_another_one_another() {
        let [first, again, other] = [3, 3, 4].map(|seed| outcome(&Rules::SELECTIVE, seed));
        assert_eq!((first.elapsed, &first.counts), (again.elapsed, &again.counts));
        assert_ne!((first.elapsed, &first.counts), (other.elapsed, &other.counts));
    }

    /// The reason for the series: what was never scanned has no active threads, and is never
    /// scanned.
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
        assert!(counts.reasons[Reason::IgnorePidInactive as usize] <= counts.passes);
        assert!(seconds.windows(2).all(|pair| pair[0].covered <= pair[1].covered));
    }

    /// Memory that was never bound away needs no migration, so the model has no gain of its own.
    #[test]
    fn with_nothing_remote_there_is_nothing_to_gain() {
        let near = Parameters { remote_cost: 1.0, ..Parameters::default() };
        let [base, selective] =
            [Rules::BASE, Rules::SELECTIVE].map(|rules| process(&near, &rules, 0, 1).elapsed_s());
        assert!((base - selective).abs() < 1e-6, "{base} {selective}");
    }
}
