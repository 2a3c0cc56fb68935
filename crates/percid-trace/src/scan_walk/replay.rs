//! A walk under other rules.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use percid_rules::scan::{Effects, Rules, Scan, Scanner, SkipReason};

use super::walk::{Line, Pass, Region, Source, Walk, WalkStep, region_at};
use crate::event::Tid;

/// Bytes of a page, for what a pass does not know better.
const PAGE: u64 = 4096;

/// Sums over passes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of passes.
    pub passes: u64,
    /// Number of times that regions were left out, or remarked on, by reason.
    pub noted: BTreeMap<SkipReason, u64>,
    /// Number of pieces of memory that were armed.
    pub armed: u64,
    /// Size of these pieces, in bytes.
    pub armed_bytes: u64,
    /// Number of different regions that were scanned.
    pub regions: u64,
}

/// Agreement of the rules with the kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Agreement {
    /// Number of passes in which both have the same lines in the same order.
    pub passes: u64,
    /// Number of lines that both have in the same pass.
    pub lines: u64,
    /// Number of lines that only the kernel has.
    pub kernel_only: u64,
    /// Number of lines that only the rules have.
    pub rules_only: u64,
    /// The first pass in which they differ.
    pub first: Option<Difference>,
}

impl Agreement {
    /// The share of the lines that both say among all that either says; 1 if there are none.
    pub fn share(&self) -> f64 {
        let all = self.lines + self.kernel_only + self.rules_only;
        if all == 0 { 1.0 } else { self.lines as f64 / all as f64 }
    }
}

/// A pass in which rules and kernel differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Time of the pass, in nanoseconds on the trace's clock.
    pub time: u64,
    /// The thread that made it.
    pub thread: Tid,
    /// The sequence after it, by the rules.
    pub sequence: i64,
    /// Lines of the kernel only.
    pub kernel_only: Vec<Line>,
    /// Lines of the rules only.
    pub rules_only: Vec<Line>,
}

/// A walk as rules make it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replayed {
    /// Sums of what the rules scan and leave out.
    pub tally: Tally,
    /// Number of times that all regions were walked.
    pub sequences: i64,
    /// Number of armed pieces that the kernel did not arm in the same pass, so that the number of
    /// pages they change is not known. The pages that changed before in their region are taken to
    /// change, or else all.
    pub guessed: u64,
    /// The kernel beside them.
    pub agreement: Agreement,
}

/// Returns the sums of what the kernel did.
pub fn kernel(walk: &Walk) -> Tally {
    let mut counts = TallyBuilder::default();
    for step in &walk.steps {
        match step {
            WalkStep::Regions(regions, _) => counts.regions.clone_from(regions),
            WalkStep::Hint(..) | WalkStep::Restart | WalkStep::Replaced => {}
            WalkStep::Pass(pass) => {
                counts.pass(&pass.lines);
                let inferred = pass.scanned.iter().chain(&pass.forced);
                inferred.for_each(|range| counts.armed(range.start, range.end));
            }
        }
    }
    counts.finish()
}

/// Lets rules live through a walk.
pub fn replay(walk: &Walk, rules: &Rules) -> Replayed {
    let mut replay = Replay {
        walk,
        rules,
        scan: Scan::new(),
        threads: 1,
        tells_skips: walk.steps.iter().any(tells_skips),
        counts: TallyBuilder::default(),
        changing: HashMap::new(),
        replayed: Replayed::default(),
    };
    walk.steps.iter().for_each(|step| replay.step(step));
    let Replay { scan, counts, mut replayed, .. } = replay;
    replayed.tally = counts.finish();
    replayed.sequences = scan.sequence();
    replayed
}

fn tells_skips(step: &WalkStep) -> bool {
    let WalkStep::Pass(pass) = step else { return false };
    pass.lines.iter().any(|line| matches!(line, Line::Noted(..)))
}

/// A tally in the making.
#[derive(Debug, Default)]
struct TallyBuilder {
    tally: Tally,
    regions: Vec<Region>,
    scanned: BTreeMap<u64, ()>,
}

impl TallyBuilder {
    fn pass(&mut self, lines: &[Line]) {
        self.tally.passes += 1;
        for line in lines {
            match *line {
                Line::Noted(_, reason) => *self.tally.noted.entry(reason).or_default() += 1,
                Line::Armed(start, end) => self.armed(start, end),
            }
        }
    }

    fn armed(&mut self, start: u64, end: u64) {
        self.tally.armed += 1;
        self.tally.armed_bytes += end - start;
        let region = region_at(&self.regions, start).map_or(start, |(range, _)| range.start);
        self.scanned.insert(region, ());
    }

    fn finish(mut self) -> Tally {
        self.tally.regions = self.scanned.len() as u64;
        self.tally
    }
}

struct Replay<'a> {
    walk: &'a Walk,
    rules: &'a Rules,
    scan: Scan,
    threads: u32,
    /// `true` if the trace has the regions that the kernel leaves out.
    tells_skips: bool,
    counts: TallyBuilder,
    /// For each region start, `true` if the last piece of the region that the kernel armed had
    /// pages that were not armed before.
    changing: HashMap<u64, bool>,
    replayed: Replayed,
}

impl Replay<'_> {
    fn step(&mut self, step: &WalkStep) {
        match step {
            WalkStep::Regions(regions, threads) => {
                self.scan.remap(regions.iter().cloned());
                self.counts.regions.clone_from(regions);
                self.threads = *threads;
            }
            &WalkStep::Hint(thread, address) => self.used(thread, address),
            WalkStep::Pass(pass) => self.pass(pass),
            WalkStep::Restart => self.scan.restart_sequences(),
            WalkStep::Replaced => self.scan = Scan::new(),
        }
    }

    fn used(&mut self, thread: Tid, address: u64) {
        if let Some((range, _)) = region_at(&self.counts.regions, address) {
            self.scan.used_by(range.start, 1 << self.rules.width.bit(thread));
        }
    }

    fn pass(&mut self, pass: &Pass) {
        if self.walk.source == Source::Tracepoints {
            self.infer_users(pass);
        }
        let scanner = self.scanner(pass);
        let mut log = Log::new(pass, self.walk, &mut self.changing);
        self.scan.pass(scanner, pass.at, &self.walk.settings, self.rules, &mut log);
        let Log { lines, guessed, .. } = log;
        self.replayed.guessed += guessed;
        self.counts.pass(&lines);
        self.compare(pass, &lines);
    }

    fn scanner(&self, pass: &Pass) -> Scanner {
        Scanner { thread: pass.thread, balances: pass.balances, threads: self.threads }
    }

    /// Without hint faults, a thread is taken to use what it scanned and would not have scanned if
    /// it did not.
    fn infer_users(&mut self, pass: &Pass) {
        let scanner = self.scanner(pass);
        let mut log = Log::new(pass, self.walk, &mut self.changing);
        let mut trial = self.scan.clone();
        trial.pass(scanner, pass.at, &self.walk.settings, self.rules, &mut log);
        let left_out = log.lines;
        for range in &pass.scanned {
            if left_out.contains(&Line::Noted(range.start, SkipReason::PidInactive)) {
                self.used(pass.thread, range.start);
            }
        }
    }

    fn compare(&mut self, pass: &Pass, ours: &[Line]) {
        let is_known = |line: &&Line| match line {
            Line::Noted(..) => self.tells_skips,
            // Without probes what the kernel armed is known by regions only.
            Line::Armed(..) => self.walk.source == Source::Probes,
        };
        let ours: Vec<Line> = ours.iter().filter(is_known).cloned().collect();
        let kernel_only = without(&pass.lines, &ours);
        let rules_only = without(&ours, &pass.lines);
        let agreement = &mut self.replayed.agreement;
        agreement.lines += (ours.len() - rules_only.len()) as u64;
        agreement.kernel_only += kernel_only.len() as u64;
        agreement.rules_only += rules_only.len() as u64;
        if ours == pass.lines {
            agreement.passes += 1;
        } else if agreement.first.is_none() {
            agreement.first = Some(Difference {
                time: pass.time,
                thread: pass.thread,
                sequence: self.scan.sequence(),
                kernel_only,
                rules_only,
            });
        }
    }
}

/// The lines of the first that the second has not, as often as there are more of them.
fn without(all: &[Line], others: &[Line]) -> Vec<Line> {
    let mut left: HashMap<&Line, usize> = HashMap::new();
    others.iter().for_each(|line| *left.entry(line).or_default() += 1);
    let is_left = |line: &&Line| match left.get_mut(*line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    all.iter().filter(is_left).cloned().collect()
}

/// The record of a pass by the rules.
struct Log<'a> {
    pass: &'a Pass,
    changing: &'a mut HashMap<u64, bool>,
    lines: Vec<Line>,
    guessed: u64,
    /// Bytes that may still be armed.
    left: u64,
}

impl<'a> Log<'a> {
    fn new(pass: &'a Pass, walk: &Walk, changing: &'a mut HashMap<u64, bool>) -> Log<'a> {
        Log { pass, changing, lines: Vec::new(), guessed: 0, left: walk.settings.scan_size }
    }

    /// Returns `true` if pages of a piece change, when the trace does not contain that.
    fn changes(&self, region: u64, part: &Range<u64>) -> bool {
        match self.pass.stop {
            // If the kernel went on beyond the point at which this would have ended the pass,
            // nothing changed.
            Some(stop) => part.end >= stop || self.left > part.end - part.start,
            None => self.changing.get(&region).copied().unwrap_or(true),
        }
    }
}

impl Effects for Log<'_> {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        self.lines.push(Line::Armed(part.start, part.end));
        let all = (part.end - part.start) / PAGE;
        let overlaps = |(armed, _): &&(Range<u64>, u64)| {
            armed.start < part.end && part.start < armed.end || *armed == part
        };
        if let Some((_, changed)) = self.pass.changed.iter().find(overlaps) {
            self.changing.insert(region, *changed > 0);
            return *changed;
        }
        self.guessed += 1;
        if !self.changes(region, &part) {
            return 0;
        }
        self.left = self.left.saturating_sub(part.end - part.start);
        all
    }

    fn note(&mut self, region: u64, reason: SkipReason) {
        self.lines.push(Line::Noted(region, reason));
    }
}
