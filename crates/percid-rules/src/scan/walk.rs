//! One pass of the scan over the regions: which are armed, which are left out, and why. It changes the scan's own
//! state only, and reports to [`Effects`].

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use super::by_activity;
use super::region::{Memory, Reason, Tracked, Traits};
use super::rules::{Order, Rules};
use super::settings::Settings;

/// A pass arms memory in pieces that end at multiples of this, the size of a huge page, in bytes.
pub const HUGE_PAGE: u64 = 2 << 20;

/// Sequences in which activity does not count, because no access could be seen yet.
const BLIND_SEQUENCES: i64 = 2;

/// On whose behalf a pass is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanner {
    /// The thread's number.
    pub thread: u32,
    /// Whether the thread's own memory policy lets pages follow their users.
    pub balances: bool,
    /// How many threads the process has.
    pub threads: u32,
}

/// What a pass does to the world. Regions are named by the address they start at.
pub trait Effects {
    /// Arms the pages of a part of a region: the next access to each is seen. Returns how many were not
    /// armed before.
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64;

    /// Takes note of why a region is not scanned, or is.
    fn note(&mut self, region: u64, reason: Reason);
}

/// The scan of a process: its regions and what is remembered of them.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// By ascending address.
    pub(super) regions: Vec<Tracked>,
    sequence: i64,
    /// Where the next pass begins.
    pub(super) offset: u64,
}

impl Scan {
    /// A scan that has no regions.
    pub fn new() -> Scan {
        Scan::default()
    }

    /// Adds a region. Returns whether it did: it does not overlap another one and is not empty.
    pub fn add(&mut self, range: Range<u64>, traits: Traits) -> bool {
        let place = self.first_above(range.start);
        let free = self.regions.get(place).is_none_or(|next| range.end <= next.range.start);
        if range.is_empty() || !free {
            return false;
        }
        self.regions.insert(place, Tracked { range, traits, memory: None });
        true
    }

    /// Forgets the region that starts at `start`. Returns whether there was one.
    pub fn remove(&mut self, start: u64) -> bool {
        let found = self.regions.iter().position(|region| region.range.start == start);
        found.map(|place| self.regions.remove(place)).is_some()
    }

    /// Replaces all regions. Those that start where one started before keep what is remembered of it. Regions that
    /// [`Scan::add`] would refuse are left out.
    pub fn remap(&mut self, regions: impl IntoIterator<Item = (Range<u64>, Traits)>) {
        let before = core::mem::take(&mut self.regions);
        for (range, traits) in regions {
            let start = range.start;
            let known = before.iter().find(|old| old.range.start == start);
            if !self.add(range, traits) {
                continue;
            }
            if let Some(region) = self.at(start) {
                region.memory = known.and_then(|old| old.memory.clone());
            }
        }
    }

    /// The traits of a region have changed.
    pub fn set_traits(&mut self, start: u64, traits: Traits) {
        if let Some(region) = self.at(start) {
            region.traits = traits;
        }
    }

    /// Threads, by their bits (see [`Width::bit`](super::Width::bit)), were seen to use a region. Before the first pass over
    /// it that is not remembered.
    pub fn used_by(&mut self, start: u64, threads: u128) {
        if let Some(memory) = self.at(start).and_then(|region| region.memory.as_mut()) {
            memory.activity.add(threads);
        }
    }

    /// How many distinct bits the users of a region have, in this window of activity and the one before.
    pub fn users(&self, start: u64) -> u32 {
        let region = self.regions.iter().find(|region| region.range.start == start);
        region.and_then(|region| region.memory.as_ref()).map_or(0, |known| known.activity.len())
    }

    /// How often all regions have been walked.
    pub fn sequence(&self) -> i64 {
        self.sequence
    }

    /// The memory of all regions, in bytes.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.range.end - region.range.start).sum()
    }

    fn at(&mut self, start: u64) -> Option<&mut Tracked> {
        self.regions.iter_mut().find(|region| region.range.start == start)
    }

    /// The index of the first region that ends above an address.
    fn first_above(&self, address: u64) -> usize {
        self.regions.partition_point(|region| region.range.end <= address)
    }

    pub(super) fn next_sequence(&mut self) {
        self.sequence += 1;
        self.offset = 0;
    }

    /// Makes one pass at `now`, which is measured from any fixed time. Without regions nothing happens.
    /// Costs a step for every region and what [`Effects::arm`] costs.
    pub fn pass(
        &mut self,
        scanner: Scanner,
        now: Duration,
        settings: &Settings,
        rules: &Rules,
        effects: &mut impl Effects,
    ) {
        if self.regions.is_empty() {
            return;
        }
        let (arm, look) = (settings.scan_size as i64, settings.look_size() as i64);
        let mut pass = Pass { scan: self, scanner, now, settings, rules, effects, arm, look };
        match rules.order {
            Order::Address => pass.by_address(),
            Order::Activity => by_activity::run(&mut pass),
        }
    }
}

/// How a walk along the regions ended.
enum Walked {
    /// Inside or behind a region: the next pass goes on there.
    Stopped(u64),
    /// Behind the last region.
    Through {
        /// Whether some were left out because the scanning thread does not use them.
        inactive: bool,
    },
}

/// How the scan of one region ended.
#[derive(PartialEq, Eq)]
pub(super) enum Scanned {
    Completely,
    BudgetSpent,
}

pub(super) struct Pass<'a, E> {
    pub(super) scan: &'a mut Scan,
    pub(super) scanner: Scanner,
    now: Duration,
    settings: &'a Settings,
    pub(super) rules: &'a Rules,
    effects: &'a mut E,
    /// Bytes that may still be armed, and looked at.
    arm: i64,
    look: i64,
}

impl<E: Effects> Pass<'_, E> {
    fn by_address(&mut self) {
        let mut walked = self.walk(false);
        if matches!(walked, Walked::Through { inactive: true }) && self.rules.force_inactive {
            walked = self.walk(true);
        }
        match walked {
            Walked::Stopped(address) => self.scan.offset = address,
            Walked::Through { .. } => self.scan.next_sequence(),
        }
    }

    /// Walks from the offset on. A forced walk scans one region whoever uses it, and stops behind it.
    fn walk(&mut self, forced: bool) -> Walked {
        let mut index = self.scan.first_above(self.scan.offset);
        if index == self.scan.regions.len() {
            self.scan.next_sequence();
            index = 0;
        }
        let (mut at, mut inactive) = (self.scan.offset, false);
        while index < self.scan.regions.len() {
            match self.question(index, forced) {
                Some(reason) => inactive |= reason == Reason::PidInactive,
                None => {
                    at = at.max(self.scan.regions[index].range.start);
                    let scanned = self.arm_from(index, &mut at);
                    if forced || scanned == Scanned::BudgetSpent {
                        return Walked::Stopped(at);
                    }
                }
            }
            index += 1;
        }
        Walked::Through { inactive }
    }

    /// Whether a region is to be left out, and why; notes it.
    fn question(&mut self, index: usize, forced: bool) -> Option<Reason> {
        let reason = self.obstacle(index).or_else(|| self.inactivity(index, forced));
        if let Some(reason) = reason {
            self.note(index, reason);
        }
        if reason == Some(Reason::SeqCompleted) {
            self.scan.offset = self.scan.regions[index].range.end;
        }
        reason
    }

    /// What keeps a region from being scanned, whoever uses it.
    pub(super) fn obstacle(&mut self, index: usize) -> Option<Reason> {
        let (now, sequence) = (self.now, self.scan.sequence);
        let region = &mut self.scan.regions[index];
        if let Some(reason) = region.traits.obstacle(self.scanner.balances) {
            return Some(reason);
        }
        let memory = region.memory.get_or_insert_with(|| Memory::new(now, sequence, self.settings));
        if sequence != 0 && now < memory.not_before {
            return Some(Reason::ScanDelay);
        }
        if self.rules.window_before_test {
            memory.end_window(now, self.settings);
        }
        let done = self.rules.once_per_sequence && memory.completed == sequence;
        done.then_some(Reason::SeqCompleted)
    }

    /// Whether the scanning thread has nothing to do with a region, and that matters.
    fn inactivity(&mut self, index: usize, forced: bool) -> Option<Reason> {
        if !forced && !self.counts_as_user(index) {
            return Some(Reason::PidInactive);
        }
        // Before the fixes a window ended only for those who get here.
        if !self.rules.window_before_test {
            if let Some(memory) = &mut self.scan.regions[index].memory {
                memory.end_window(self.now, self.settings);
            }
        }
        None
    }

    fn counts_as_user(&mut self, index: usize) -> bool {
        if self.is_blind(index) || self.is_used_by_scanner(index) {
            return true;
        }
        let begun = self.scan.offset > self.scan.regions[index].range.start;
        if begun && self.rules.complete_partial {
            self.note(index, Reason::IgnorePidInactive);
            return true;
        }
        self.is_rescued(index)
    }

    /// Whether activity does not count yet.
    pub(super) fn is_blind(&self, index: usize) -> bool {
        let first = self.memory(index).map_or(0, |memory| memory.first);
        let since = if self.rules.own_first_sequences { first } else { 0 };
        self.scan.sequence - since < BLIND_SEQUENCES
    }

    /// Whether the scanning thread used the region recently.
    pub(super) fn is_used_by_scanner(&self, index: usize) -> bool {
        let (width, thread) = (self.rules.width, self.scanner.thread);
        self.memory(index).is_some_and(|memory| memory.activity.has(width, thread))
    }

    /// Whether the region was left out for more sequences than there are threads, and that matters.
    pub(super) fn is_rescued(&self, index: usize) -> bool {
        let completed = self.memory(index).map_or(0, |memory| memory.completed);
        let starves = self.scan.sequence > completed + i64::from(self.scanner.threads);
        self.rules.rescue_starving && starves
    }

    pub(super) fn memory(&self, index: usize) -> Option<&Memory> {
        self.scan.regions[index].memory.as_ref()
    }

    pub(super) fn note(&mut self, index: usize, reason: Reason) {
        self.effects.note(self.scan.regions[index].range.start, reason);
    }

    /// Arms a region from an address on, which it moves, piece by piece.
    pub(super) fn arm_from(&mut self, index: usize, at: &mut u64) -> Scanned {
        let Range { start, end } = self.scan.regions[index].range;
        loop {
            let stop = (*at + self.arm as u64).next_multiple_of(HUGE_PAGE).min(end);
            let changed = self.effects.arm(start, *at..stop);
            let bytes = (stop - *at) as i64;
            *at = stop;
            // What was armed before costs looking only.
            self.arm -= if changed > 0 { bytes } else { 0 };
            self.look -= bytes;
            if self.arm <= 0 || self.look <= 0 {
                return Scanned::BudgetSpent;
            }
            if *at >= end {
                break;
            }
        }
        let sequence = self.scan.sequence;
        if let Some(memory) = &mut self.scan.regions[index].memory {
            memory.completed = sequence;
        }
        Scanned::Completely
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::prelude::v1::{String, ToOwned, ToString};

    use super::super::region::Policy;
    use crate::scan::Width;

    const MIB: u64 = 1 << 20;
    const ME: Scanner = Scanner { thread: 100, balances: true, threads: 4 };

    /// What happened, in short: `arm A..B` in MiB, or a reason.
    #[derive(Default)]
    struct Log(Vec<(u64, String)>);

    impl Effects for Log {
        fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
            self.0.push((region / MIB, format!("arm {}..{}", part.start / MIB, part.end / MIB)));
            1
        }

        fn note(&mut self, region: u64, reason: Reason) {
            self.0.push((region / MIB, reason.to_string()));
        }
    }

    fn pass_by(scan: &mut Scan, thread: u32, seconds: u64, rules: &Rules) -> Vec<(u64, String)> {
        let mut log = Log::default();
        let scanner = Scanner { thread, ..ME };
        let now = Duration::from_secs(seconds);
        scan.pass(scanner, now, &Settings::default(), rules, &mut log);
        log.0
    }

    fn pass(scan: &mut Scan, seconds: u64, rules: &Rules) -> Vec<(u64, String)> {
        pass_by(scan, ME.thread, seconds, rules)
    }

    fn done(region: u64, what: &str) -> (u64, String) {
        (region, what.to_owned())
    }

    /// A scan past its blind sequences, over regions of these starts and ends in MiB that nobody uses.
    fn grown(regions: &[(u64, u64)]) -> Scan {
        let mut scan = Scan::new();
        for &(start, end) in regions {
            assert!(scan.add(start * MIB..end * MIB, Traits::ANONYMOUS));
        }
        scan.sequence = 5;
        pass(&mut scan, 0, &Rules::SELECTIVE);
        scan
    }

    #[test]
    fn obstacles_come_in_the_published_order() {
        let hidden = Traits { readable: false, writable: false, ..Traits::ANONYMOUS };
        let file = Traits { file: true, writable: false, ..Traits::ANONYMOUS };
        let traits = [
            Traits { movable: false, ..file },
            Traits { policy: Some(Policy::Fixed), ..hidden },
            file,
            hidden,
        ];
        let mut scan = Scan::new();
        for (place, traits) in (0..).zip(traits) {
            scan.add(place * MIB..(place + 1) * MIB, traits);
        }
        let reasons: Vec<String> =
            pass(&mut scan, 0, &Rules::BASE).into_iter().map(|(_, what)| what).collect();
        assert_eq!(reasons, ["unsuitable", "unsuitable", "shared_ro", "inaccessible"]);
    }

    #[test]
    fn a_scanner_that_does_not_balance_leaves_regions_without_a_policy_out() {
        let mut scan = Scan::new();
        scan.add(0..MIB, Traits::ANONYMOUS);
        scan.add(MIB..2 * MIB, Traits { policy: Some(Policy::Balancing), ..Traits::ANONYMOUS });
        let mut log = Log::default();
        let bound = Scanner { balances: false, ..ME };
        scan.pass(bound, Duration::ZERO, &Settings::default(), &Rules::BASE, &mut log);
        assert_eq!(log.0, [done(0, "unsuitable"), done(1, "arm 1..2")]);
    }

    #[test]
    fn inactive_regions_are_forced_one_by_one_or_never() {
        let mut scan = grown(&[(0, 1), (1, 2)]);
        let left_out = [done(0, "pid_inactive"), done(1, "pid_inactive")];
        assert_eq!(pass(&mut scan.clone(), 2, &Rules::BASE), left_out);
        let forced = pass(&mut scan, 2, &Rules::SELECTIVE);
        assert_eq!(forced[2..], [done(0, "arm 0..1")]);
        let next = pass(&mut scan, 2, &Rules::SELECTIVE);
        assert_eq!(next, [done(1, "pid_inactive"), done(1, "arm 1..2")]);
    }

    #[test]
    fn a_partial_scan_is_completed_by_any_thread() {
        let mut scan = grown(&[(0, 300)]);
        pass(&mut scan, 2, &Rules::SELECTIVE);
        let lazy = Rules { complete_partial: false, force_inactive: false, ..Rules::SELECTIVE };
        assert_eq!(pass(&mut scan.clone(), 2, &lazy), [done(0, "pid_inactive")]);
        let next = pass(&mut scan, 2, &Rules::SELECTIVE);
        assert_eq!(next, [done(0, "ignore_pid_inactive"), done(0, "arm 256..300")]);
    }

    #[test]
    fn users_are_forgotten_after_one_to_two_windows() {
        let mut scan = grown(&[(0, 1)]);
        scan.used_by(0, 1 << Width::Bits64.bit(ME.thread));
        assert_eq!(scan.users(0), 1);
        let rules = Rules { force_inactive: false, once_per_sequence: false, ..Rules::SELECTIVE };
        for (second, seen) in [(2, true), (5, true), (9, true)] {
            let what = pass(&mut scan, second, &rules);
            assert_eq!(what == [done(0, "arm 0..1")], seen, "{second}: {what:?}");
        }
        // Each visit ends one window.
        pass(&mut scan, 30, &rules);
        assert_eq!(pass(&mut scan, 30, &rules), [done(0, "pid_inactive")]);
    }

    #[test]
    fn a_region_is_scanned_once_in_a_sequence() {
        let mut scan = grown(&[(0, 1), (1, 2)]);
        scan.used_by(0, 1 << Width::Bits64.bit(ME.thread));
        let first = pass(&mut scan, 2, &Rules::SELECTIVE);
        let forced = done(1, "arm 1..2");
        assert_eq!(
            first[..],
            [done(0, "arm 0..1"), done(1, "pid_inactive"), done(0, "seq_completed"), forced]
        );
    }

    #[test]
    fn late_fixes_count_the_regions_own_sequences_and_end_starvation() {
        let fixed = Rules { force_inactive: false, ..Rules::LINUX_6_12 };
        let scan = grown(&[(0, 1)]);
        assert_eq!(pass(&mut scan.clone(), 2, &fixed), [done(0, "arm 0..1")]);
        for (sequence, what) in [(8, "pid_inactive"), (9, "arm 0..1")] {
            let mut old = scan.clone();
            old.sequence = sequence;
            assert_eq!(pass(&mut old, 2, &fixed), [done(0, what)], "{sequence}");
        }
    }

    #[test]
    fn a_pass_that_changes_nothing_looks_at_eight_times_as_much() {
        struct Armed(u32);
        impl Effects for Armed {
            fn arm(&mut self, _: u64, _: Range<u64>) -> u64 {
                self.0 += 1;
                0
            }
            fn note(&mut self, _: u64, _: Reason) {}
        }
        let mut scan = Scan::new();
        scan.add(0..4096 * MIB, Traits::ANONYMOUS);
        let mut armed = Armed(0);
        scan.pass(ME, Duration::ZERO, &Settings::default(), &Rules::BASE, &mut armed);
        assert_eq!((armed.0, scan.offset), (8, 2048 * MIB));
    }

    #[test]
    fn the_order_by_activity_visits_users_first_and_one_idle_region() {
        let mut scan = grown(&[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
        let rules = Rules { order: Order::Activity, ..Rules::SELECTIVE };
        let users =
            |threads: &[u32]| threads.iter().fold(0, |set, &t| set | 1 << rules.width.bit(t));
        scan.used_by(MIB, users(&[200]));
        scan.used_by(3 * MIB, users(&[201, 202]));
        scan.used_by(4 * MIB, users(&[ME.thread]));
        let armed = [(4, "arm 4..5"), (3, "arm 3..4"), (1, "arm 1..2"), (0, "arm 0..1")];
        let expected = armed.into_iter().chain([(2, "pid_inactive")]);
        let expected: Vec<_> = expected.map(|(region, what)| done(region, what)).collect();
        assert_eq!(pass(&mut scan, 2, &rules), expected);
        let sequence = scan.sequence;
        let next = pass(&mut scan, 3, &rules);
        assert_eq!((next.last(), scan.sequence), (Some(&done(2, "arm 2..3")), sequence + 1));
    }

    #[test]
    fn a_new_region_waits_but_not_in_the_first_sequence() {
        let mut scan = Scan::new();
        scan.add(0..4 * MIB, Traits::ANONYMOUS);
        assert_eq!(pass(&mut scan, 0, &Rules::LINUX_6_12), [done(0, "arm 0..4")]);
        scan.sequence = 1;
        scan.remap([(8 * MIB..9 * MIB, Traits::ANONYMOUS)]);
        assert_eq!(pass(&mut scan, 5, &Rules::LINUX_6_12), [done(8, "scan_delay")]);
        assert_eq!(pass(&mut scan, 6, &Rules::LINUX_6_12), [done(8, "arm 8..9")]);
    }

    #[test]
    fn a_region_that_grows_keeps_its_users_and_one_that_starts_elsewhere_does_not() {
        let mut scan = grown(&[(0, 1), (4, 5)]);
        scan.used_by(0, 1);
        scan.used_by(4 * MIB, 1);
        scan.remap([(0..2 * MIB, Traits::ANONYMOUS), (3 * MIB..5 * MIB, Traits::ANONYMOUS)]);
        assert_eq!((scan.users(0), scan.users(3 * MIB)), (1, 0));
    }

    #[test]
    fn regions_do_not_overlap() {
        let mut scan = grown(&[(2, 4)]);
        for (start, end) in [(1, 3), (3, 5), (2, 4), (3, 3), (0, 9)] {
            assert!(!scan.add(start * MIB..end * MIB, Traits::ANONYMOUS), "{start}..{end}");
        }
        assert!(scan.add(0..2 * MIB, Traits::ANONYMOUS) && scan.remove(0) && !scan.remove(0));
    }
}
