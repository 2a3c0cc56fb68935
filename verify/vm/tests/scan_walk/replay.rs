//! The simulated walk, fed with a recording.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;

use percid_sim::Ns;
use percid_sim::numa::rules::Rules;
use percid_sim::numa::walk::{self, Action, Memory, Process, Reason, Scanner};

use crate::recording::{Done, Entry, Recording};

/// What was compared and found equal.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    pub(crate) passes: u32,
    pub(crate) chunks: u32,
    pub(crate) reasons: BTreeMap<Reason, u32>,
}

/// Where the walks part.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The number of passes that were equal.
    pub(crate) passes: u32,
    pub(crate) scanner: Scanner,
    pub(crate) sequence: i64,
    pub(crate) real: Vec<Done>,
    pub(crate) simulated: Vec<Done>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { passes, scanner, sequence, real, simulated } = self;
        writeln!(f, "{passes} passes were equal, then one by {scanner:?} in sequence {sequence}:")?;
        let count = real.len().max(simulated.len());
        let pairs = (0..count).map(|n| (real.get(n), simulated.get(n)));
        for (real, simulated) in pairs {
            let sign = if real == simulated { ' ' } else { '!' };
            writeln!(f, "{sign} real {real:x?} simulated {simulated:x?}")?;
        }
        Ok(())
    }
}

/// Walks along. Stops at the first pass that differs in any decision.
pub(crate) fn compare(recording: &Recording, rules: &Rules) -> Result<Agreement, Box<Difference>> {
    let mut replay = Replay {
        recording,
        rules,
        process: Process::new(Vec::new(), recording.threads),
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
    process: Process,
    /// Threads with a policy of their own.
    bound: Vec<u32>,
    agreement: Agreement,
}

impl Replay<'_> {
    fn entry(&mut self, entry: &Entry) -> Result<(), Box<Difference>> {
        match entry {
            Entry::Regions(regions) => self.process.remap(regions.clone()),
            Entry::Policy { thread, balancing } => {
                self.bound.retain(|bound| bound != thread);
                self.bound.extend((!balancing).then_some(*thread));
            }
            Entry::Hint { thread, address } => {
                let index = self.process.region_above(*address);
                if let Some(region) = self.process.regions.get_mut(index) {
                    region.used_by(self.rules.width, *thread);
                }
            }
            Entry::Pass { thread, at, actions } => return self.pass(*thread, *at, actions),
        }
        Ok(())
    }

    fn pass(&mut self, thread: u32, at: Ns, real: &[Done]) -> Result<(), Box<Difference>> {
        let scanner = Scanner { thread, balancing: !self.bound.contains(&thread) };
        let settings = &self.recording.settings;
        let mut results = Results::of(real);
        let decisions =
            walk::pass(&mut self.process, scanner, at, settings, self.rules, &mut results);
        let done = |(region, action): (usize, Action)| match action {
            Action::Armed { range, changed } => Done::Armed { range, changed },
            Action::Traced(reason) => {
                Done::Traced { start: self.process.regions[region].range.start, reason }
            }
        };
        let simulated: Vec<Done> = decisions.into_iter().map(done).collect();
        if simulated != real {
            let (passes, sequence) = (self.agreement.passes, self.process.sequence);
            let real = real.to_vec();
            return Err(Box::new(Difference { passes, scanner, sequence, real, simulated }));
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

/// How many pages each chunk changed, which the walk cannot know.
struct Results(VecDeque<u64>);

impl Results {
    fn of(real: &[Done]) -> Results {
        let changed = real.iter().filter_map(|done| match done {
            Done::Armed { changed, .. } => Some(*changed),
            Done::Traced { .. } => None,
        });
        Results(changed.collect())
    }
}

impl Memory for Results {
    fn arm(&mut self, _: usize, _: Range<u64>) -> u64 {
        // Out of results the walk has already gone wrong.
        self.0.pop_front().unwrap_or(0)
    }
}
