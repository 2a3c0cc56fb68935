//! Both walks over one script.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use percid_numa::walk as library;
use percid_numa::{Rules, Settings, Width};
use percid_sim::numa as simulator;

use crate::script::{Event, Kind};

/// What a walk did, in words of its own neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// A reason by its published name.
    Noted(&'static str),
    /// A part that was armed.
    Armed(Range<u64>),
}

/// The decisions of a pass: the start of the region, and what was done.
pub type Decisions = Vec<(u64, Done)>;

/// What both walks agreed on.
#[derive(Debug, Default)]
pub struct Agreement {
    /// Passes that were compared.
    pub passes: usize,
    /// Pieces that both armed.
    pub armed: usize,
    /// How often each reason was given.
    pub reasons: BTreeMap<&'static str, usize>,
    /// The same, by region.
    pub by_region: BTreeMap<(u64, &'static str), usize>,
}

/// The first pass in which the walks differ.
#[derive(Debug)]
pub struct Difference {
    /// Its number.
    pub pass: usize,
    /// What the library's walk did.
    pub library: Decisions,
    /// What the simulator's walk did.
    pub simulator: Decisions,
}

/// Lets both walks live through a script, each by rules of its own kind.
///
/// # Errors
///
/// The first difference.
pub fn compare(
    script: &[Event],
    settings: &Settings,
    rules: &Rules,
    their_rules: &simulator::rules::Rules,
) -> Result<Agreement, Box<Difference>> {
    let mut ours = library::Scan::new();
    let mut theirs = simulator::walk::Process::new(Vec::new(), 1);
    let mut agreement = Agreement::default();
    for event in script {
        match event {
            Event::Map(range, kind) => {
                assert!(ours.add(range.clone(), traits(kind)), "the script maps over a region");
                let new = simulator::region::Region::new(range.clone(), their_traits(kind));
                let mut regions = theirs.regions.clone();
                regions.push(new);
                regions.sort_by_key(|region| region.range.start);
                theirs.remap(regions);
            }
            Event::Unmap(start) => {
                assert!(ours.remove(*start), "the script unmaps what is mapped");
                let mut regions = theirs.regions.clone();
                regions.retain(|region| region.range.start != *start);
                theirs.remap(regions);
            }
            Event::Use(start, thread) => {
                ours.used_by(*start, 1 << rules.width.bit(*thread));
                let used = theirs.regions.iter_mut().find(|region| region.range.start == *start);
                used.expect("a region").used_by(their_rules.width, *thread);
            }
            Event::Pass { thread, balances, at, threads, fresh } => {
                let scanner =
                    library::Scanner { thread: *thread, balances: *balances, threads: *threads };
                let mut log = Log { fresh, next: 0, decisions: Vec::new() };
                ours.pass(scanner, *at, settings, rules, &mut log);
                theirs.threads = *threads;
                let done = their_pass(&mut theirs, scanner, *at, settings, their_rules, fresh);
                if log.decisions != done || ours.sequence() != theirs.sequence {
                    let (pass, library) = (agreement.passes, log.decisions);
                    return Err(Box::new(Difference { pass, library, simulator: done }));
                }
                agreement.take(done);
            }
        }
    }
    Ok(agreement)
}

impl Agreement {
    fn take(&mut self, done: Decisions) {
        self.passes += 1;
        for (region, what) in done {
            match what {
                Done::Armed(_) => self.armed += 1,
                Done::Noted(name) => {
                    *self.reasons.entry(name).or_default() += 1;
                    *self.by_region.entry((region, name)).or_default() += 1;
                }
            }
        }
    }
}

/// How many pages of a piece change.
fn changed(part: &Range<u64>, tenths: u64) -> u64 {
    (part.end - part.start) / 4096 * tenths / 10
}

struct Log<'a> {
    fresh: &'a [u64],
    next: usize,
    decisions: Decisions,
}

impl library::Effects for Log<'_> {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        let tenths = self.fresh[self.next % self.fresh.len()];
        self.next += 1;
        self.decisions.push((region, Done::Armed(part.clone())));
        changed(&part, tenths)
    }

    fn note(&mut self, region: u64, reason: library::Reason) {
        self.decisions.push((region, Done::Noted(reason.name())));
    }
}

struct Fresh<'a> {
    fresh: &'a [u64],
    next: usize,
}

impl simulator::walk::Memory for Fresh<'_> {
    fn arm(&mut self, _: usize, part: Range<u64>) -> u64 {
        let tenths = self.fresh[self.next % self.fresh.len()];
        self.next += 1;
        changed(&part, tenths)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("less than 500 years")
}

fn their_pass(
    process: &mut simulator::walk::Process,
    scanner: library::Scanner,
    at: Duration,
    settings: &Settings,
    rules: &simulator::rules::Rules,
    fresh: &[u64],
) -> Decisions {
    let settings = simulator::settings::Settings {
        scan_delay: nanoseconds(settings.scan_delay),
        scan_size: settings.scan_size,
        period_min: nanoseconds(settings.period_min),
        period_max: nanoseconds(settings.period_max),
    };
    let scanner = simulator::walk::Scanner { thread: scanner.thread, balancing: scanner.balances };
    let mut memory = Fresh { fresh, next: 0 };
    let done =
        simulator::walk::pass(process, scanner, nanoseconds(at), &settings, rules, &mut memory);
    let decision = |(index, action): simulator::walk::Decision| {
        let what = match action {
            simulator::walk::Action::Traced(reason) => Done::Noted(reason.name()),
            simulator::walk::Action::Armed { range, .. } => Done::Armed(range),
        };
        (process.regions[index].range.start, what)
    };
    done.into_iter().map(decision).collect()
}

fn traits(kind: &Kind) -> library::Traits {
    let policy = kind.policy.map(|balances| match balances {
        true => library::Policy::Balancing,
        false => library::Policy::Fixed,
    });
    let [readable, writable, executable] = kind.rights;
    library::Traits {
        movable: kind.movable,
        policy,
        file: kind.file,
        readable,
        writable,
        executable,
    }
}

fn their_traits(kind: &Kind) -> simulator::region::Traits {
    use simulator::region::Policy;
    let policy = match kind.policy {
        None => Policy::Thread,
        Some(true) => Policy::Balancing,
        Some(false) => Policy::Fixed,
    };
    let [readable, writable, executable] = kind.rights;
    simulator::region::Traits {
        migratable: kind.movable,
        policy,
        file: kind.file,
        readable,
        writable,
        executable,
    }
}

/// The simulator's word for the same rules.
pub fn their_rules(rules: &Rules) -> simulator::rules::Rules {
    simulator::rules::Rules {
        width: match rules.width {
            Width::Bits64 => simulator::activity::Width::Bits64,
            Width::Bits128 => simulator::activity::Width::Bits128,
        },
        window_before_test: rules.window_before_test,
        once_per_sequence: rules.once_per_sequence,
        finish_begun: rules.complete_partial,
        force_one: rules.force_inactive,
        own_first_sequences: rules.own_first_sequences,
        rescue_starving: rules.end_starvation,
        order: simulator::rules::Order::Address,
    }
}
