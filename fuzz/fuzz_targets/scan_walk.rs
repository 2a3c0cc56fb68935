//! The NUMA scan's walk over regions against a naive model of the published one.
//!
//! The model is written from the published order of the checks (Linux 6.7, and the fixes up to
//! 6.12) and from the documentation of `percid_rules::scan`. It keeps a list of the state of every
//! region, and scans it step by step.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid_rules::scan::{
    Effects, Order, Policy, Rules, Scan, Scanner, Settings, SkipReason, Traits, Width,
};

#[derive(Arbitrary, Debug)]
struct Input {
    rules: Choice,
    settings: Constants,
    /// The numbers of the pieces that were armed before: for those only looking is charged.
    armed: u64,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
struct Choice {
    wide: bool,
    flags: u8,
    by_activity: bool,
}

#[derive(Arbitrary, Debug)]
struct Constants {
    delay_ms: u16,
    /// In quarters of a mebibyte.
    size: u8,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Add(Place),
    Remove(u8),
    Remap(Vec<Place>),
    Change(u8, Kind),
    Use(u8, u8),
    Pass { thread: u8, balances: bool, threads: u8, pause_ms: u16 },
}

/// A region, in quarters of a mebibyte.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct Place {
    start: u8,
    length: u8,
    kind: Kind,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
struct Kind(u8);

const UNIT: u64 = 256 << 10;

impl Place {
    fn range(self) -> Range<u64> {
        let start = u64::from(self.start) * UNIT;
        start..start + u64::from(self.length) * UNIT
    }
}

impl Kind {
    /// Returns traits: most regions can be scanned.
    fn traits(self) -> Traits {
        let has = |bit: u8| self.0 >> bit & 1 == 1;
        if !has(7) {
            return Traits::ANONYMOUS;
        }
        let policy = match self.0 & 3 {
            0 => Some(Policy::Fixed),
            1 => Some(Policy::Balancing),
            _ => None,
        };
        let (readable, writable, executable) = (has(2), has(3), has(4));
        Traits { movable: has(5), policy, file: has(6), readable, writable, executable }
    }
}

impl Choice {
    fn rules(&self) -> Rules {
        let has = |bit: u8| self.flags >> bit & 1 == 1;
        Rules {
            width: if self.wide { Width::Bits128 } else { Width::Bits64 },
            track_regions: !has(6),
            window_before_test: has(0),
            once_per_sequence: has(1),
            complete_partial: has(2),
            scan_one_inactive: has(3),
            per_region_cycles: has(4),
            scan_starved: has(5),
            order: if self.by_activity { Order::Activity } else { Order::Address },
        }
    }
}

/// The actions of a scan, in its order.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Armed(u64, Range<u64>),
    Noted(u64, SkipReason),
}

/// The effects of both the product and the model.
struct Log {
    armed: u64,
    done: Vec<Done>,
}

impl Effects for Log {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        let piece = part.start / UNIT + self.done.len() as u64;
        let was_armed = self.armed >> (piece % 64) & 1 == 1;
        let pages = if was_armed { 0 } else { (part.end - part.start) / 4096 };
        self.done.push(Done::Armed(region, part));
        pages
    }

    fn note(&mut self, region: u64, reason: SkipReason) {
        self.done.push(Done::Noted(region, reason));
    }
}

fuzz_target!(|input: Input| {
    let rules = input.rules.rules();
    let settings = Settings {
        scan_delay: Duration::from_millis(input.settings.delay_ms.into()),
        scan_size: (u64::from(input.settings.size) + 1) * UNIT,
        ..Settings::default()
    };
    let (mut scan, mut model) = (Scan::new(), Model::new(rules, settings));
    let mut now = Duration::ZERO;
    for step in input.steps {
        match step {
            Step::Add(place) => {
                let added = scan.add(place.range(), place.kind.traits());
                assert_eq!(added, model.add(place.range(), place.kind.traits()), "{place:?}");
            }
            Step::Remove(start) => {
                let start = u64::from(start) * UNIT;
                assert_eq!(scan.remove(start), model.regions.remove(&start).is_some());
            }
            Step::Remap(places) => {
                scan.remap(places.iter().map(|place| (place.range(), place.kind.traits())));
                model.remap(&places);
            }
            Step::Change(start, kind) => {
                let start = u64::from(start) * UNIT;
                scan.set_traits(start, kind.traits());
                if let Some(region) = model.regions.get_mut(&start) {
                    region.traits = kind.traits();
                }
            }
            Step::Use(start, thread) => {
                let (start, bit) = (u64::from(start) * UNIT, rules.width.bit(thread.into()));
                scan.used_by(start, 1 << bit);
                model.used(start, bit);
            }
            Step::Pass { thread, balances, threads, pause_ms } => {
                now += Duration::from_millis(pause_ms.into());
                let scanner = Scanner { thread: thread.into(), balances, threads: threads.into() };
                let log = || Log { armed: input.armed, done: Vec::new() };
                let (mut found, mut expected) = (log(), log());
                scan.pass(scanner, now, &settings, &rules, &mut found);
                model.pass(scanner, now, &mut expected);
                assert_eq!(found.done, expected.done, "{scanner:?} at {now:?}");
            }
        }
        compare(&scan, &model);
    }
});

fn compare(scan: &Scan, model: &Model) {
    assert_eq!(scan.sequence(), model.sequence);
    let sizes = model.regions.iter().map(|(start, region)| region.end - start);
    assert_eq!(scan.bytes(), sizes.sum::<u64>());
    for (&start, region) in &model.regions {
        let users = region.known.as_ref().map_or(0, |known| known.users().len());
        assert_eq!(scan.users(start) as usize, users, "region {start:x}");
    }
}

/// A region by its start.
#[derive(Debug, Clone)]
struct Region {
    end: u64,
    traits: Traits,
    known: Option<Known>,
}

/// The data that a region stores from its first visit on.
#[derive(Debug, Clone)]
struct Known {
    next_scan: Duration,
    reset: Duration,
    /// The threads' bits of the previous window, and of this one.
    windows: [BTreeSet<u32>; 2],
    completed: i64,
    first: i64,
}

impl Known {
    fn users(&self) -> BTreeSet<u32> {
        &self.windows[0] | &self.windows[1]
    }
}

#[derive(Debug)]
struct Model {
    rules: Rules,
    settings: Settings,
    regions: BTreeMap<u64, Region>,
    sequence: i64,
    offset: u64,
}

/// The remaining budget of a pass, in bytes.
struct Budget {
    arm: i64,
    look: i64,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.arm <= 0 || self.look <= 0
    }
}

impl Model {
    fn new(rules: Rules, settings: Settings) -> Model {
        Model { rules, settings, regions: BTreeMap::new(), sequence: 0, offset: 0 }
    }

    fn add(&mut self, range: Range<u64>, traits: Traits) -> bool {
        let overlaps =
            |(&start, region): (&u64, &Region)| start < range.end && range.start < region.end;
        if range.is_empty() || self.regions.iter().any(overlaps) {
            return false;
        }
        self.regions.insert(range.start, Region { end: range.end, traits, known: None });
        true
    }

    fn remap(&mut self, places: &[Place]) {
        let before = std::mem::take(&mut self.regions);
        for place in places {
            let start = place.range().start;
            if self.add(place.range(), place.kind.traits()) {
                let known = before.get(&start).and_then(|region| region.known.clone());
                self.regions.get_mut(&start).expect("added").known = known;
            }
        }
    }

    fn used(&mut self, start: u64, bit: u32) {
        let region = self.regions.get_mut(&start);
        if let Some(known) = region.and_then(|region| region.known.as_mut()) {
            known.windows[1].insert(bit);
        }
    }

    fn pass(&mut self, scanner: Scanner, now: Duration, log: &mut Log) {
        if self.regions.is_empty() {
            return;
        }
        let size = self.settings.scan_size as i64;
        let mut budget = Budget { arm: size, look: 8 * size };
        match self.rules.order {
            Order::Address => self.by_address(scanner, now, &mut budget, log),
            Order::Activity => self.by_activity(scanner, now, &mut budget, log),
        }
    }

    fn end_sequence(&mut self) {
        self.sequence += 1;
        self.offset = 0;
    }

    fn by_address(&mut self, scanner: Scanner, now: Duration, budget: &mut Budget, log: &mut Log) {
        for forced in [false, true] {
            // From the offset on; if nothing is there, from the start, in a new sequence.
            if self.regions.values().all(|region| region.end <= self.offset) {
                self.end_sequence();
            }
            let from = self.offset;
            let ahead = self.regions.iter().filter(|(_, region)| region.end > from);
            let ahead: Vec<u64> = ahead.map(|(&start, _)| start).collect();
            let mut left_out = false;
            for start in ahead {
                let question = self.question(start, scanner, now, forced, log);
                if let Some(reason) = question {
                    log.note(start, reason);
                    left_out |= reason == SkipReason::PidInactive;
                    if reason == SkipReason::SeqCompleted {
                        self.offset = self.regions[&start].end;
                    }
                    continue;
                }
                let stopped = self.scan(start, from.max(start), budget, log);
                if forced || budget.is_spent() {
                    self.offset = stopped;
                    return;
                }
            }
            if !(left_out && self.rules.scan_one_inactive) {
                break;
            }
        }
        self.end_sequence();
    }

    /// Checks the conditions in the published order; returns the reason if the region is skipped.
    fn question(
        &mut self,
        start: u64,
        scanner: Scanner,
        now: Duration,
        forced: bool,
        log: &mut Log,
    ) -> Option<SkipReason> {
        let obstacle = self.obstacle(start, scanner, now);
        if obstacle.is_some() {
            return obstacle;
        }
        if !forced && !self.is_accessed(start, scanner) {
            let partial = self.offset > start;
            if partial && self.rules.complete_partial {
                log.note(start, SkipReason::IgnorePidInactive);
            } else if !self.starves(start, scanner) {
                return Some(SkipReason::PidInactive);
            }
        }
        if self.rules.track_regions && !self.rules.window_before_test {
            self.end_window(start, now);
        }
        None
    }

    fn obstacle(&mut self, start: u64, scanner: Scanner, now: Duration) -> Option<SkipReason> {
        let Traits { movable, policy, file, readable, writable, executable } =
            self.regions[&start].traits;
        let balances = match policy {
            None => scanner.balances,
            Some(policy) => policy == Policy::Balancing,
        };
        if !movable || !balances {
            return Some(SkipReason::Unsuitable);
        }
        if file && readable && !writable {
            return Some(SkipReason::SharedRo);
        }
        if !readable && !writable && !executable {
            return Some(SkipReason::Inaccessible);
        }
        if !self.rules.track_regions {
            return None;
        }
        let (sequence, delay) = (self.sequence, self.settings.scan_delay);
        let region = self.regions.get_mut(&start).expect("it is there");
        let known = region.known.get_or_insert_with(|| Known {
            next_scan: now + delay,
            reset: now + delay + 4 * delay,
            windows: Default::default(),
            completed: sequence - 1,
            first: sequence,
        });
        if sequence != 0 && now < known.next_scan {
            return Some(SkipReason::ScanDelay);
        }
        let completed = known.completed;
        if self.rules.window_before_test {
            self.end_window(start, now);
        }
        (self.rules.once_per_sequence && completed == sequence).then_some(SkipReason::SeqCompleted)
    }

    fn end_window(&mut self, start: u64, now: Duration) {
        let region = self.regions.get_mut(&start).expect("it is there");
        let known = region.known.as_mut().expect("it was visited");
        // Not in the process's first sequence.
        if self.sequence != 0 && now > known.reset {
            known.reset += 4 * self.settings.scan_delay;
            known.windows[0] = std::mem::take(&mut known.windows[1]);
        }
    }

    fn is_accessed(&self, start: u64, scanner: Scanner) -> bool {
        if !self.rules.track_regions {
            return true;
        }
        let known = self.regions[&start].known.as_ref().expect("it was visited");
        let since = if self.rules.per_region_cycles { known.first } else { 0 };
        let bit = self.rules.width.bit(scanner.thread);
        self.sequence < since + 2 || known.users().contains(&bit)
    }

    fn starves(&self, start: u64, scanner: Scanner) -> bool {
        let known = self.regions[&start].known.as_ref().expect("it was visited");
        let sequences = self.sequence - known.completed;
        self.rules.scan_starved && sequences > i64::from(scanner.threads)
    }

    /// Arms a region from an address on, in pieces that end at multiples of 2 MiB, until the budget
    /// is used up; returns where it stopped.
    fn scan(&mut self, start: u64, from: u64, budget: &mut Budget, log: &mut Log) -> u64 {
        let end = self.regions[&start].end;
        let mut at = from;
        loop {
            let wanted = at + budget.arm as u64;
            let stop = wanted.div_ceil(2 << 20) * (2 << 20);
            let stop = stop.min(end);
            let bytes = (stop - at) as i64;
            if log.arm(start, at..stop) > 0 {
                budget.arm -= bytes;
            }
            budget.look -= bytes;
            at = stop;
            if budget.is_spent() {
                return at;
            }
            if at >= end {
                break;
            }
        }
        let region = self.regions.get_mut(&start).expect("it is there");
        if self.rules.track_regions {
            region.known.as_mut().expect("it was visited").completed = self.sequence;
        }
        at
    }

    /// Scans by activity: first begun regions, then those that the thread uses, those that several
    /// use, those that one uses, and one region without users.
    fn by_activity(&mut self, scanner: Scanner, now: Duration, budget: &mut Budget, log: &mut Log) {
        let mut ranks: [Vec<u64>; 5] = Default::default();
        let starts: Vec<u64> = self.regions.keys().copied().collect();
        for start in starts {
            if let Some(reason) = self.obstacle(start, scanner, now) {
                log.note(start, reason);
                continue;
            }
            let region = &self.regions[&start];
            let users = region.known.as_ref().map_or(0, |known| known.users().len());
            let begun = start < self.offset && self.offset <= region.end;
            let own = self.is_accessed(start, scanner) || self.starves(start, scanner);
            let rank = match users {
                _ if begun => 0,
                _ if own => 1,
                0 => 4,
                1 => 3,
                _ => 2,
            };
            ranks[rank].push(start);
        }
        let begun_at = std::mem::take(&mut self.offset);
        let (mut over, mut idle_done) = (true, false);
        for (rank, starts) in ranks.iter().enumerate() {
            for &start in starts {
                if idle_done || self.offset != 0 {
                    log.note(start, SkipReason::PidInactive);
                    over = false;
                    continue;
                }
                idle_done = rank == 4;
                let from = if rank == 0 { begun_at } else { start };
                let stopped = self.scan(start, from, budget, log);
                if budget.is_spent() {
                    self.offset = stopped;
                    over = false;
                }
            }
        }
        if over {
            self.end_sequence();
        }
    }
}
