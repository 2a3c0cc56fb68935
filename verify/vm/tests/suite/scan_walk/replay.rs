//! Our walk, fed with a recording.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Effects, Rules, Scan, Scanner, SkipReason};

use super::recording::{Done, Entry, Recording, Region};

/// The counts of equal results.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    pub(crate) passes: u32,
    pub(crate) chunks: u32,
    pub(crate) reasons: BTreeMap<SkipReason, u32>,
}

/// The first difference of the two scans.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The number of passes that were equal.
    pub(crate) passes: u32,
    pub(crate) scanner: Scanner,
    pub(crate) sequence: i64,
    pub(crate) real: Vec<Done>,
    pub(crate) ours: Vec<Done>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { passes, scanner, sequence, real, ours } = self;
        writeln!(f, "{passes} passes were equal, then one by {scanner:?} in sequence {sequence}:")?;
        let count = real.len().max(ours.len());
        let pairs = (0..count).map(|n| (real.get(n), ours.get(n)));
        for (real, ours) in pairs {
            let sign = if real == ours { ' ' } else { '!' };
            writeln!(f, "{sign} real {real:x?} ours {ours:x?}")?;
        }
        Ok(())
    }
}

/// Walks along. Stops at the first pass that differs in any decision.
pub(crate) fn compare(recording: &Recording, rules: &Rules) -> Result<Agreement, Box<Difference>> {
    let mut replay = Replay {
        recording,
        rules,
        scan: Scan::new(),
        regions: &[],
        bound: Vec::new(),
        agreement: Agreement::default(),
    };
    for entry in &recording.entries {
        replay.entry(entry)?;
    }
    Ok(replay.agreement)
}

struct Replay<'a> {
    recording: &'a Recording,
    rules: &'a Rules,
    scan: Scan,
    /// The regions by ascending address.
    regions: &'a [Region],
    /// Threads with a policy of their own.
    bound: Vec<u32>,
    agreement: Agreement,
}

impl<'a> Replay<'a> {
    fn entry(&mut self, entry: &'a Entry) -> Result<(), Box<Difference>> {
        match entry {
            Entry::Regions(regions) => {
                self.regions = regions;
                self.scan.remap(regions.iter().cloned());
            }
            Entry::Policy { thread, balancing } => {
                self.bound.retain(|bound| bound != thread);
                self.bound.extend((!balancing).then_some(*thread));
            }
            Entry::Hint { thread, address } => {
                let index = self.regions.partition_point(|(range, _)| range.end <= *address);
                if let Some((range, _)) = self.regions.get(index) {
                    self.scan.used_by(range.start, 1 << self.rules.width.bit(*thread));
                }
            }
            Entry::Pass { thread, at, actions } => return self.pass(*thread, *at, actions),
        }
        Ok(())
    }

    fn pass(&mut self, thread: u32, at: Duration, real: &[Done]) -> Result<(), Box<Difference>> {
        let balances = !self.bound.contains(&thread);
        let scanner = Scanner { thread, balances, threads: self.recording.threads };
        let mut log = Log { changed: changes(real), done: Vec::new() };
        self.scan.pass(scanner, at, &self.recording.settings, self.rules, &mut log);
        let ours = log.done;
        if ours != real {
            let (passes, sequence) = (self.agreement.passes, self.scan.sequence());
            let real = real.to_vec();
            return Err(Box::new(Difference { passes, scanner, sequence, real, ours }));
        }
        self.agreement.passes += 1;
        for done in real {
            match done {
                Done::Traced { reason, .. } => {
                    *self.agreement.reasons.entry(*reason).or_default() += 1
                }
                Done::Armed { .. } => self.agreement.chunks += 1,
            }
        }
        Ok(())
    }
}

/// Returns the number of pages that each chunk changed, which the scan cannot compute.
fn changes(real: &[Done]) -> VecDeque<u64> {
    let changed = real.iter().filter_map(|done| match done {
        Done::Armed { changed, .. } => Some(*changed),
        Done::Traced { .. } => None,
    });
    changed.collect()
}

struct Log {
    changed: VecDeque<u64>,
    done: Vec<Done>,
}

impl Effects for Log {
    fn arm(&mut self, _: u64, range: Range<u64>) -> u64 {
        // Without a result left the walk has already gone wrong.
        let changed = self.changed.pop_front().unwrap_or(0);
        self.done.push(Done::Armed { range, changed });
        changed
    }

    fn note(&mut self, start: u64, reason: SkipReason) {
        self.done.push(Done::Traced { start, reason });
    }
}
