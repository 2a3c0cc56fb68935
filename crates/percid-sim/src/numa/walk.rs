//! One pass over the regions of a process: which are armed, which are left out, and why.
//!
//! The walk is pure. It is given the process, who scans and when, and the rules; it changes the scan's own
//! state only, and asks [`Memory`] to arm pages.

use std::ops::Range;

use serde::Serialize;

use super::ranked;
use super::region::{Region, State};
use super::rules::{Order, Rules};
use super::settings::{HUGE, Settings, VIRTUAL};
use crate::Ns;

/// What is said about a region in the trace (`sched_skip_vma_numa`). All but the last one leave it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is too new.
    ScanDelay,
    /// Its pages cannot be migrated, or must not be.
    Unsuitable,
    /// A file's pages that nobody writes.
    SharedRo,
    /// Without access rights nobody can trap.
    Inaccessible,
    /// The scanning thread did not use it of late.
    PidInactive,
    /// Nor did it here, but the scan had already begun.
    IgnorePidInactive,
    /// It was scanned completely in this sequence.
    SeqCompleted,
}

impl Reason {
    /// All reasons, as the published table lists them.
    pub const ALL: [Reason; 7] = [
        Reason::ScanDelay,
        Reason::Unsuitable,
        Reason::SharedRo,
        Reason::Inaccessible,
        Reason::PidInactive,
        Reason::IgnorePidInactive,
        Reason::SeqCompleted,
    ];

    /// The name in the trace.
    pub fn name(self) -> &'static str {
        match self {
            Reason::ScanDelay => "scan_delay",
            Reason::Unsuitable => "unsuitable",
            Reason::SharedRo => "shared_ro",
            Reason::Inaccessible => "inaccessible",
            Reason::PidInactive => "pid_inactive",
            Reason::IgnorePidInactive => "ignore_pid_inactive",
            Reason::SeqCompleted => "seq_completed",
        }
    }

    /// The reason of this name.
    pub fn from_name(name: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.name() == name)
    }
}

/// A process as its scan sees it.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its regions, by ascending address.
    pub regions: Vec<Region>,
    /// The number of its threads.
    pub threads: u32,
    /// How often the whole process has been walked.
    pub sequence: i64,
    /// Where the next pass begins.
    pub offset: u64,
}

impl Process {
    /// A process that was never scanned.
    pub fn new(regions: Vec<Region>, threads: u32) -> Process {
        Process { regions, threads, sequence: 0, offset: 0 }
    }

    /// The regions change. Those that begin where one began before keep what the scan remembers of it.
    pub fn remap(&mut self, regions: Vec<Region>) {
        let mut before = std::mem::replace(&mut self.regions, regions);
        for region in &mut self.regions {
            let old = before.iter_mut().find(|old| old.range.start == region.range.start);
            region.state = old.and_then(|old| old.state.take());
        }
    }

    /// The first region that ends above `address`; one past the last if there is none.
    pub fn region_above(&self, address: u64) -> usize {
        self.regions.partition_point(|region| region.range.end <= address)
    }

    pub(super) fn begin_sequence(&mut self) {
        self.sequence += 1;
        self.offset = 0;
    }
}

/// The thread whose turn it is to scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanner {
    /// Its ID.
    pub thread: u32,
    /// Whether its own memory policy lets pages migrate when they are used.
    pub balancing: bool,
}

/// The memory behind the regions.
pub trait Memory {
    /// Arms the pages of a range of the region with this index: the next access to each traps. Returns the
    /// number of page-table entries that changed.
    fn arm(&mut self, region: usize, range: Range<u64>) -> u64;
}

/// What a pass did with a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It appears in the trace.
    Traced(Reason),
    /// A chunk was armed.
    Armed {
        /// Its addresses.
        range: Range<u64>,
        /// The page-table entries that changed.
        changed: u64,
    },
}

/// An action and the index of the region that it is about.
pub type Decision = (usize, Action);

/// One pass over `process` at `now` by `scanner`. Returns what it did, in order. Costs one step a region.
pub fn pass(
    process: &mut Process,
    scanner: Scanner,
    now: Ns,
    settings: &Settings,
    rules: &Rules,
    memory: &mut impl Memory,
) -> Vec<Decision> {
    let budget = Budget::new(settings);
    let decisions = Vec::new();
    let mut walk = Walk { process, scanner, now, settings, rules, memory, budget, decisions };
    match rules.order {
        Order::Address => walk.by_address(),
        Order::Activity => ranked::pass(&mut walk),
    }
    walk.decisions
}

/// What a pass may still do, in bytes.
#[derive(Debug)]
struct Budget {
    arm: i64,
    look: i64,
}

impl Budget {
    fn new(settings: &Settings) -> Budget {
        let arm = settings.scan_size as i64;
        Budget { arm, look: arm * VIRTUAL as i64 }
    }

    fn spent(&self) -> bool {
        self.arm <= 0 || self.look <= 0
    }
}

/// How a round over the list ended.
enum Round {
    /// Here, in the middle of it.
    At(u64),
    /// At its end, and whether regions were left out because nobody uses them.
    End { skipped: bool },
}

pub(super) struct Walk<'a, M> {
    pub(super) process: &'a mut Process,
    pub(super) scanner: Scanner,
    pub(super) now: Ns,
    pub(super) settings: &'a Settings,
    pub(super) rules: &'a Rules,
    memory: &'a mut M,
    budget: Budget,
    decisions: Vec<Decision>,
}

impl<M: Memory> Walk<'_, M> {
    fn by_address(&mut self) {
        let mut forced = false;
        loop {
            match self.round(forced) {
                Round::At(address) => {
                    self.process.offset = address;
                    return;
                }
                Round::End { skipped: true } if self.rules.force_one && !forced => forced = true,
                Round::End { .. } => {
                    self.process.begin_sequence();
                    return;
                }
            }
        }
    }

    /// Walks from the offset to the end of the list, or until the budget is spent or, if forced, one region
    /// is scanned.
    fn round(&mut self, forced: bool) -> Round {
        let mut index = self.process.region_above(self.process.offset);
        if index == self.process.regions.len() {
            self.process.begin_sequence();
            index = 0;
        }
        let mut skipped = false;
        let mut from = self.process.offset;
        for index in index..self.process.regions.len() {
            match self.left_out(index, forced) {
                Some(Reason::PidInactive) => skipped = true,
                Some(_) => {}
                None => {
                    from = from.max(self.process.regions[index].range.start);
                    let (end, complete) = self.scan(index, from);
                    if !complete || forced {
                        return Round::At(end);
                    }
                    from = end;
                }
            }
        }
        Round::End { skipped }
    }

    /// Why the region is not scanned now, if so. The order of the questions is that of the kernel.
    fn left_out(&mut self, index: usize, forced: bool) -> Option<Reason> {
        let reason = self.not_a_candidate(index).or_else(|| {
            let out = !forced && !self.used(index);
            self.turn_window(index, !self.rules.window_before_test && !out);
            out.then_some(Reason::PidInactive)
        });
        if let Some(reason) = reason {
            self.trace(index, reason);
        }
        if reason == Some(Reason::SeqCompleted) {
            self.process.offset = self.process.regions[index].range.end;
        }
        reason
    }

    /// Why the region is not scanned now, whoever uses it.
    pub(super) fn not_a_candidate(&mut self, index: usize) -> Option<Reason> {
        let (sequence, settings) = (self.process.sequence, self.settings);
        let region = &mut self.process.regions[index];
        let traits = region.traits;
        match () {
            () if !traits.suitable(self.scanner.balancing) => return Some(Reason::Unsuitable),
            () if traits.shared_ro() => return Some(Reason::SharedRo),
            () if !traits.accessible() => return Some(Reason::Inaccessible),
            () => {}
        }
        let now = self.now;
        let state = region.state.get_or_insert_with(|| State::new(now, sequence, settings));
        if sequence != 0 && now < state.next_scan {
            return Some(Reason::ScanDelay);
        }
        self.turn_window(index, self.rules.window_before_test);
        let once = self.rules.once_per_sequence;
        (once && self.state(index).completed == sequence).then_some(Reason::SeqCompleted)
    }

    fn turn_window(&mut self, index: usize, due: bool) {
        if let (true, Some(state)) = (due, &mut self.process.regions[index].state) {
            state.turn_window(self.now, self.settings);
        }
    }

    /// Whether the scanning thread counts as a user of the region.
    fn used(&mut self, index: usize) -> bool {
        if self.is_new(index)
            || self.state(index).users().contains(self.rules.width, self.scanner.thread)
        {
            return true;
        }
        if self.rules.finish_begun && self.begun(index) {
            self.trace(index, Reason::IgnorePidInactive);
            return true;
        }
        self.rules.rescue_starving && self.starves(index)
    }

    /// Whether activity does not count yet.
    pub(super) fn is_new(&self, index: usize) -> bool {
        let first = if self.rules.own_first_sequences { self.state(index).first } else { 0 };
        self.process.sequence - first < 2
    }

    /// Whether the pass before ended inside the region.
    pub(super) fn begun(&self, index: usize) -> bool {
        self.process.offset > self.process.regions[index].range.start
    }

    /// Whether it was left out for more sequences than there are threads.
    pub(super) fn starves(&self, index: usize) -> bool {
        self.process.sequence > self.state(index).completed + i64::from(self.process.threads)
    }

    pub(super) fn state(&self, index: usize) -> &State {
        // Every way here leads over the first visit, which makes the state.
        self.process.regions[index].state.as_ref().expect("a region that was visited")
    }

    /// Arms the region from an address on, in chunks. Returns where it ended and whether the region is done
    /// with; it is not if its last chunk used up the budget.
    pub(super) fn scan(&mut self, index: usize, from: u64) -> (u64, bool) {
        let end = self.process.regions[index].range.end;
        let mut at = from;
        loop {
            let stop = (at + self.budget.arm as u64).next_multiple_of(HUGE).min(end);
            let changed = self.memory.arm(index, at..stop);
            self.decisions.push((index, Action::Armed { range: at..stop, changed }));
            let length = (stop - at) as i64;
            self.budget.arm -= if changed > 0 { length } else { 0 };
            self.budget.look -= length;
            at = stop;
            if self.budget.spent() {
                return (at, false);
            }
            if at == end {
                break;
            }
        }
        let sequence = self.process.sequence;
        if let Some(state) = &mut self.process.regions[index].state {
            state.completed = sequence;
        }
        (at, true)
    }

    pub(super) fn trace(&mut self, index: usize, reason: Reason) {
        self.decisions.push((index, Action::Traced(reason)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numa::region::{Policy, Traits};
    use crate::numa::settings::MIB;
    use crate::{MS, SECOND};

    /// Memory in which every page changes whenever it is armed.
    struct All;

    impl Memory for All {
        fn arm(&mut self, _: usize, range: Range<u64>) -> u64 {
            (range.end - range.start) / 4096
        }
    }

    /// Memory in which nothing ever changes.
    struct Nothing;

    impl Memory for Nothing {
        fn arm(&mut self, _: usize, _: Range<u64>) -> u64 {
            0
        }
    }

    const SCANNER: Scanner = Scanner { thread: 100, balancing: true };

    /// Regions of these traits and sizes in MiB, side by side, with a first address that is no multiple of a
    /// huge page.
    fn process(regions: &[(Traits, u64)]) -> Process {
        let mut end = 4096;
        let regions = regions.iter().map(|(traits, size)| {
            let start = end;
            end += size * MIB;
            Region::new(start..end, *traits)
        });
        Process::new(regions.collect(), 4)
    }

    fn walk(process: &mut Process, at: Ns, rules: &Rules) -> Vec<Decision> {
        pass(process, SCANNER, at, &Settings::default(), rules, &mut All)
    }

    fn reasons(decisions: &[Decision]) -> Vec<(usize, Reason)> {
        let traced = decisions.iter().filter_map(|(index, action)| match action {
            Action::Traced(reason) => Some((*index, *reason)),
            Action::Armed { .. } => None,
        });
        traced.collect()
    }

    fn armed(decisions: &[Decision]) -> Vec<usize> {
        let armed = decisions.iter().filter(|(_, action)| matches!(action, Action::Armed { .. }));
        armed.map(|(index, _)| *index).collect()
    }

    /// A process in its third sequence whose regions have all been visited and are old enough.
    fn grown(regions: &[(Traits, u64)]) -> (Process, Ns) {
        let mut process = process(regions);
        process.sequence = 5;
        walk(&mut process, 0, &Rules::SELECTIVE);
        (process, 2 * SECOND)
    }

    #[test]
    fn what_cannot_be_scanned_is_told_apart_in_the_order_of_the_kernel() {
        let hidden_device = Traits { migratable: false, file: true, ..Traits::GUARD };
        let own = |policy| Traits { policy, ..Traits::FILE };
        let mut process = process(&[
            (hidden_device, 1),
            (own(Policy::Fixed), 1),
            (own(Policy::Balancing), 1),
            (Traits { file: true, ..Traits::GUARD }, 1),
            (Traits::ANONYMOUS, 1),
        ]);
        let bound = Scanner { balancing: false, ..SCANNER };
        let decisions = walk(&mut process.clone(), 0, &Rules::SELECTIVE);
        use Reason::{Inaccessible, SharedRo, Unsuitable};
        let expected = [(0, Unsuitable), (1, Unsuitable), (2, SharedRo), (3, Inaccessible)];
        assert_eq!(reasons(&decisions), expected);
        assert_eq!(armed(&decisions), [4]);
        let decisions =
            pass(&mut process, bound, 0, &Settings::default(), &Rules::SELECTIVE, &mut All);
        assert_eq!(reasons(&decisions).len(), 5, "the thread's policy counts: {decisions:?}");
    }

    #[test]
    fn a_new_region_waits_but_not_in_the_first_sequence() {
        let mut process = process(&[(Traits::ANONYMOUS, 4)]);
        assert_eq!(armed(&walk(&mut process, 0, &Rules::SELECTIVE)), [0]);
        process.sequence = 1;
        process.remap(vec![Region::new(8 * MIB..9 * MIB, Traits::ANONYMOUS)]);
        let new = walk(&mut process, 5 * SECOND, &Rules::SELECTIVE);
        assert_eq!(reasons(&new), [(0, Reason::ScanDelay)]);
        let early = walk(&mut process, 6 * SECOND - 1, &Rules::SELECTIVE);
        assert_eq!(reasons(&early), [(0, Reason::ScanDelay)]);
    }

    #[test]
    fn a_region_that_nobody_uses_is_left_out_and_then_forced() {
        let (mut process, now) = grown(&[(Traits::ANONYMOUS, 1), (Traits::ANONYMOUS, 1)]);
        let base = walk(&mut process.clone(), now, &Rules::BASE);
        assert_eq!(reasons(&base).len(), 2);
        assert_eq!(armed(&base), []);
        let decisions = walk(&mut process, now, &Rules::SELECTIVE);
        assert_eq!(reasons(&decisions).len(), 2, "both are left out at first");
        assert_eq!(armed(&decisions), [0], "then one is scanned");
        let next = walk(&mut process, now + 1, &Rules::SELECTIVE);
        assert_eq!(armed(&next), [1], "the next pass goes on from there: {next:?}");
    }

    #[test]
    fn a_hint_fault_makes_a_user_for_one_to_two_windows() {
        let (mut process, now) = grown(&[(Traits::ANONYMOUS, 1)]);
        process.regions[0].used_by(Rules::SELECTIVE.width, SCANNER.thread);
        let at = |time: Ns| {
            let mut process = process.clone();
            let rules = Rules { force_one: false, ..Rules::SELECTIVE };
            // The window turns once a visit.
            walk(&mut process, time, &rules);
            walk(&mut process, time, &rules);
            armed(&walk(&mut process, time, &rules)).len()
        };
        assert_eq!((at(now), at(5 * SECOND)), (1, 1));
        assert_eq!(at(9 * SECOND), 1, "the second window is still on");
        assert_eq!(at(9 * SECOND + 1), 0);
    }

    #[test]
    fn before_the_series_a_window_never_turned_for_who_was_not_a_user() {
        let (mut process, now) = grown(&[(Traits::ANONYMOUS, 1)]);
        process.regions[0].used_by(Rules::BASE.width, SCANNER.thread + 1);
        for rules in [Rules::BASE, Rules::SELECTIVE] {
            let mut process = process.clone();
            (0..9).for_each(|n| drop(walk(&mut process, now + n * 5 * SECOND, &rules)));
            let users = process.regions[0].state.as_ref().expect("a visited region").users();
            assert_eq!(users.is_empty(), rules == Rules::SELECTIVE);
        }
    }

    #[test]
    fn a_scan_takes_several_passes_and_is_ended_by_whoever_comes() {
        let (mut process, now) = grown(&[(Traits::ANONYMOUS, 600), (Traits::ANONYMOUS, 1)]);
        let first = walk(&mut process, now, &Rules::SELECTIVE);
        let Some((0, Action::Armed { range, .. })) = first.last() else { panic!("{first:?}") };
        assert_eq!((range.end % HUGE, range.end), (0, 258 * MIB), "256 MiB, up to a huge page");
        let second = walk(&mut process, now, &Rules::SELECTIVE);
        assert_eq!(reasons(&second), [(0, Reason::IgnorePidInactive)]);
        let mut left = process.clone();
        let rules = Rules { finish_begun: false, force_one: false, ..Rules::SELECTIVE };
        assert_eq!(armed(&walk(&mut left, now, &rules)), []);
        walk(&mut process, now, &Rules::SELECTIVE);
        assert_eq!(process.regions[0].state.as_ref().expect("visited").completed, process.sequence);
    }

    #[test]
    fn a_region_is_scanned_once_in_a_sequence() {
        let (mut process, now) = grown(&[(Traits::ANONYMOUS, 1), (Traits::ANONYMOUS, 1)]);
        process.regions[1].used_by(Rules::SELECTIVE.width, SCANNER.thread);
        let first = walk(&mut process, now, &Rules::SELECTIVE);
        assert_eq!(armed(&first), [1, 0], "the used one, then the forced one");
        let second = walk(&mut process, now, &Rules::SELECTIVE);
        assert_eq!(reasons(&second), [(1, Reason::SeqCompleted)]);
        let again = Rules { once_per_sequence: false, ..Rules::SELECTIVE };
        let (mut process, now) = grown(&[(Traits::ANONYMOUS, 1)]);
        process.regions[0].used_by(again.width, SCANNER.thread);
        assert_eq!(armed(&walk(&mut process, now, &again)), [0]);
    }

    #[test]
    fn the_later_fixes_let_late_and_starving_regions_in() {
        let (process, now) = grown(&[(Traits::ANONYMOUS, 1)]);
        let fixed = Rules { force_one: false, ..Rules::LINUX_6_12 };
        let own = armed(&walk(&mut process.clone(), now, &fixed));
        assert_eq!(own, [0], "its second sequence, not the process's");
        let mut old = process.clone();
        old.sequence = 8;
        assert_eq!(armed(&walk(&mut old.clone(), now, &fixed)), []);
        old.sequence = 9;
        assert_eq!(armed(&walk(&mut old, now, &fixed)), [0], "4 threads, 5 sequences");
    }

    #[test]
    fn pages_that_do_not_change_cost_virtual_budget_only() {
        let (mut process, now) = grown(&[(Traits::ANONYMOUS, 4096)]);
        let settings = Settings::default();
        let decisions =
            pass(&mut process, SCANNER, now, &settings, &Rules::SELECTIVE, &mut Nothing);
        assert_eq!(armed(&decisions).len(), 8, "8 x 256 MiB: {decisions:?}");
    }

    #[test]
    fn the_order_by_activity_visits_users_first_and_one_idle_region() {
        let regions = [(Traits::ANONYMOUS, 1); 5];
        let (mut process, now) = grown(&regions);
        let rules = Rules { order: Order::Activity, ..Rules::SELECTIVE };
        let mut used = |region: usize, threads: &[u32]| {
            for &thread in threads {
                process.regions[region].used_by(rules.width, thread);
            }
        };
        used(1, &[200]);
        used(3, &[201, 202]);
        used(4, &[SCANNER.thread]);
        let decisions = walk(&mut process, now, &rules);
        assert_eq!(armed(&decisions), [4, 3, 1, 0], "{decisions:?}");
        assert_eq!(reasons(&decisions), [(2, Reason::PidInactive)]);
        let sequence = process.sequence;
        let next = walk(&mut process, now + MS, &rules);
        assert_eq!((armed(&next), process.sequence), (vec![2], sequence + 1));
    }

    #[test]
    fn a_process_without_regions_is_walked_in_no_time() {
        let mut process = process(&[]);
        assert_eq!(walk(&mut process, 0, &Rules::LINUX_6_12), []);
        assert!(process.sequence > 0);
    }
}
