//! Extraction of walks from a trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Policy, Settings, SkipReason, Traits};

use super::costs::costs;
use super::rule_sets::of_release;
use super::walk::{Inferred, Line, Pass, Region, Source, Walk, WalkStep, region_at};
use crate::event::{Shares, Tid, What};
use crate::numa;
use crate::trace::Trace;

/// Time without a line of its thread after which an unmarked pass ends, in nanoseconds. The
/// shortest period is twice as long.
const PAUSE: u64 = 50_000_000;

/// The walks over all processes that a trace shows being scanned.
pub fn walks(trace: &Trace) -> Vec<Walk> {
    let threads = Threads::from_trace(trace);
    let mut by_process: BTreeMap<Tid, Vec<&numa::Event>> = BTreeMap::new();
    for event in &trace.numa {
        by_process.entry(threads.process(event)).or_default().push(event);
    }
    let settings = settings(trace);
    let clock = Clock::from_events(&trace.numa);
    let walk = |(process, events): (Tid, Vec<&numa::Event>)| {
        let turns = threads.turns.get(&process).map_or(&[][..], Vec::as_slice);
        let (source, happened) = happened(&events, turns, clock)?;
        let mut walk = Walk {
            process,
            source,
            settings,
            settings_known: trace.origin.scan.is_some(),
            was_there: !threads.born.contains(&process),
            steps: Vec::new(),
            inferred: Inferred::default(),
            costs: costs(&events, &trace.origin.nodes),
        };
        let mut looks = looks(&events);
        if source == Source::Probes && leaves_out_by_traits_only(trace) {
            walk.inferred.traits = fix_shared_memory(&mut looks, &happened);
        }
        Steps::new(&mut walk, looks).all(happened);
        Some(walk)
    };
    by_process.into_iter().filter_map(walk).collect()
}

fn settings(trace: &Trace) -> Settings {
    let mut settings = Settings::default();
    if let Some(scan) = trace.origin.scan {
        settings.scan_delay = Duration::from_millis(scan.delay_ms);
        settings.scan_size = scan.size_mb << 20;
    }
    let usable = settings.check().is_ok();
    if usable { settings } else { Settings::default() }
}

/// The process of each thread.
struct Threads {
    process: HashMap<Tid, Tid>,
    /// Processes that began while it was recorded.
    born: BTreeSet<Tid>,
    /// Number of threads of each process.
    alive: HashMap<Tid, u32>,
    /// Times at which the scan of a process began anew, and why.
    turns: HashMap<Tid, Vec<(u64, Turn)>>,
}

/// An event at which a scan begins anew.
#[derive(Clone, Copy)]
enum Turn {
    /// The only thread of a process created another one, or another process.
    Fork,
    /// The process replaced its program.
    Exec,
}

impl Threads {
    fn from_trace(trace: &Trace) -> Threads {
        let mut threads = Threads {
            process: HashMap::new(),
            born: BTreeSet::new(),
            alive: HashMap::new(),
            turns: HashMap::new(),
        };
        for event in &trace.events {
            match event.what {
                What::Member { thread, process } => threads.joins(thread, process),
                What::Fork { parent, child, shares } => {
                    let process = threads.of_thread(parent);
                    if threads.alive.get(&process) == Some(&1) {
                        threads.turn(process, event.time, Turn::Fork);
                    }
                    match shares {
                        Shares::Process => threads.joins(child, process),
                        _ => threads.begins(child),
                    }
                }
                What::Exec { thread, .. } => {
                    threads.begins(thread);
                    threads.turn(thread, event.time, Turn::Exec);
                }
                What::Exit { thread } => {
                    let process = threads.of_thread(thread);
                    threads
                        .alive
                        .entry(process)
                        .and_modify(|count| *count = count.saturating_sub(1));
                }
                _ => {}
            }
        }
        threads
    }

    fn joins(&mut self, thread: Tid, process: Tid) {
        if self.process.insert(thread, process) != Some(process) {
            *self.alive.entry(process).or_default() += 1;
        }
    }

    fn begins(&mut self, process: Tid) {
        self.process.insert(process, process);
        self.born.insert(process);
        self.alive.insert(process, 1);
    }

    fn turn(&mut self, process: Tid, time: u64, turn: Turn) {
        self.turns.entry(process).or_default().push((time, turn));
    }

    fn of_thread(&self, thread: Tid) -> Tid {
        self.process.get(&thread).copied().unwrap_or(thread)
    }

    fn process(&self, event: &numa::Event) -> Tid {
        match event.what {
            numa::What::Process { process, .. } | numa::What::Region { process, .. } => process,
            _ => self.of_thread(event.thread),
        }
    }
}

/// The clock by which the scan goes.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Its ticks in a second; `None` if the trace does not have them.
    hz: Option<u64>,
}

/// Time for which ticks must be seen to know their length, in nanoseconds.
const LONG_ENOUGH: u64 = 200_000_000;

/// The ticks in a second for which kernels are built.
const HZ: [u64; 4] = [100, 250, 300, 1000];

impl Clock {
    fn from_events(events: &[numa::Event]) -> Clock {
        let mut ticks = events.iter().filter_map(|event| match event.what {
            numa::What::Pass { ticks, .. } => Some((event.time, ticks)),
            _ => None,
        });
        let ends = ticks.next().zip(ticks.next_back());
        let hz = ends.and_then(|((began, first), (ended, last))| {
            let time = ended.saturating_sub(began);
            let seen = (time >= LONG_ENOUGH).then_some(last.saturating_sub(first))?;
            let is_off = |hz: &u64| seen.saturating_mul(1000).abs_diff(time / 1_000_000 * hz);
            HZ.into_iter().min_by_key(is_off)
        });
        Clock { hz }
    }

    /// A time on it.
    fn convert(self, time: u64, ticks: Option<u64>) -> Duration {
        match (self.hz, ticks) {
            (Some(hz), Some(ticks)) => {
                let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(hz);
                Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX / 2))
            }
            _ => Duration::from_nanos(time),
        }
    }
}

/// No address of a program is above this (2^57: five levels of page tables), nor does a region end
/// before it begins.
fn is_range(start: u64, end: u64) -> bool {
    start < end && end <= 1 << 57
}

/// The regions of a process as read at one time.
struct Look {
    time: u64,
    threads: u32,
    regions: Vec<Region>,
}

fn looks(events: &[&numa::Event]) -> Vec<Look> {
    let mut looks: Vec<Look> = Vec::new();
    for event in events {
        match event.what {
            numa::What::Process { threads, .. } => {
                looks.push(Look { time: event.time, threads, regions: Vec::new() });
            }
            numa::What::Region { start, end, traits, .. } if is_range(start, end) => {
                if let Some(look) = looks.last_mut() {
                    look.regions.push((start..end, traits));
                }
            }
            _ => {}
        }
    }
    looks.iter_mut().for_each(|look| look.regions.sort_by_key(|(range, _)| range.start));
    looks
}

/// Returns `true` if the traced kernel scans every region that its traits allow, whatever its
/// users.
fn leaves_out_by_traits_only(trace: &Trace) -> bool {
    let rules = trace.origin.release.as_deref().and_then(of_release);
    rules.is_some_and(|set| !set.rules.track_regions)
}

/// Until 2026 the kernel took shared memory and files in memory (tmpfs) that have no policy of their
/// own for memory whose policy forbids the scan, and no file that it shows tells them from others.
/// So what no pass arms is taken for that. Returns how many regions are.
///
/// Source of the fact: Johannes Weiner, "mm: mempolicy: fix automatic numa balancing for shmem",
/// June 2026.
fn fix_shared_memory(looks: &mut [Look], happened: &[Happened]) -> u64 {
    let passes = happened.iter().filter_map(|happened| match happened {
        Happened::Pass(raw) => Some(raw),
        Happened::Hint(..) | Happened::Turn(_) => None,
    });
    let armed: BTreeMap<u64, u64> = passes
        .flat_map(|raw| &raw.said)
        .filter_map(|said| match *said {
            Said::Armed { start, end, .. } => Some((start, end)),
            Said::Noted { .. } => None,
        })
        .collect();
    let mut fixed = BTreeSet::new();
    for (range, traits) in looks.iter_mut().flat_map(|look| &mut look.regions) {
        let is_armed =
            armed.range(..range.end).next_back().is_some_and(|(_, &end)| end > range.start);
        if traits.file && traits.writable && traits.policy.is_none() && !is_armed {
            traits.policy = Some(Policy::Fixed);
            fixed.insert(range.start);
        }
    }
    fixed.len() as u64
}

/// Something that happened, as the trace has it.
enum Happened {
    Hint(Tid, u64),
    Pass(Raw),
    Turn(Turn),
}

/// A pass as the trace has it.
struct Raw {
    time: u64,
    at: Duration,
    thread: Tid,
    last: u64,
    /// The address at which the pass before ended.
    offset: Option<u64>,
    said: Vec<Said>,
}

/// A line of a pass.
#[derive(Clone, Copy)]
enum Said {
    Noted { start: u64, end: u64, reason: Option<SkipReason> },
    Armed { start: u64, end: u64, changed: Option<u64> },
}

/// Returns the events of a process, in order; `None` if it was not scanned.
fn happened(
    events: &[&numa::Event],
    turns: &[(u64, Turn)],
    clock: Clock,
) -> Option<(Source, Vec<Happened>)> {
    let marked = events.iter().any(|event| matches!(event.what, numa::What::Pass { .. }));
    let source = if marked { Source::Probes } else { Source::Tracepoints };
    let turn = |&(time, turn): &(u64, Turn)| (time, Happened::Turn(turn));
    let mut all: Vec<(u64, Happened)> = turns.iter().map(turn).collect();
    // For each thread its pass that has begun.
    let mut open: HashMap<Tid, Raw> = HashMap::new();
    let mut last_thread = None;
    for event in events {
        let numa::Event { time, thread, .. } = **event;
        let raw = |ticks| Raw {
            time,
            at: clock.convert(time, ticks),
            thread,
            last: time,
            offset: None,
            said: Vec::new(),
        };
        let said = match event.what {
            numa::What::Pass { ticks, .. } => {
                close(&mut open, thread, &mut all);
                open.insert(thread, raw(Some(ticks)));
                continue;
            }
            numa::What::Hint { address, .. } => {
                all.push((time, Happened::Hint(thread, address)));
                continue;
            }
            numa::What::Skip { start, end, reason, .. } if is_range(start, end) => {
                Said::Noted { start, end, reason }
            }
            numa::What::Arm { start, end, changed } if is_range(start, end.saturating_add(1)) => {
                Said::Armed { start, end, changed }
            }
            _ => continue,
        };
        if source == Source::Tracepoints {
            let pauses = open.get(&thread).is_none_or(|raw| raw.last.saturating_add(PAUSE) < time);
            if pauses || last_thread != Some(thread) {
                close(&mut open, thread, &mut all);
                open.insert(thread, raw(None));
            }
            last_thread = Some(thread);
        }
        // Passes that began before the recording are left out.
        let Some(pass) = open.get_mut(&thread) else { continue };
        if let (numa::What::Skip { offset, .. }, None) = (event.what, pass.offset) {
            pass.offset = Some(offset);
        }
        pass.last = time;
        pass.said.push(said);
    }
    let left: Vec<Tid> = open.keys().copied().collect();
    left.into_iter().for_each(|thread| close(&mut open, thread, &mut all));
    all.sort_by_key(|&(time, _)| time);
    let any = all.iter().any(|(_, happened)| matches!(happened, Happened::Pass(_)));
    any.then(|| (source, all.into_iter().map(|(_, happened)| happened).collect()))
}

/// Ends the pass of a thread. One that did nothing was not due.
fn close(open: &mut HashMap<Tid, Raw>, thread: Tid, all: &mut Vec<(u64, Happened)>) {
    if let Some(raw) = open.remove(&thread).filter(|raw| !raw.said.is_empty()) {
        all.push((raw.time, Happened::Pass(raw)));
    }
}

/// Makes steps of what happened.
struct Steps<'a> {
    walk: &'a mut Walk,
    looks: Vec<Look>,
    /// The look that holds now.
    look: usize,
    /// The regions by that look and by what passes said.
    regions: Vec<Region>,
    begun: bool,
}

impl<'a> Steps<'a> {
    fn new(walk: &'a mut Walk, looks: Vec<Look>) -> Steps<'a> {
        Steps { walk, looks, look: 0, regions: Vec::new(), begun: false }
    }

    fn all(mut self, happened: Vec<Happened>) {
        let next_offsets = next_offsets(&happened);
        for (happened, next_offset) in happened.into_iter().zip(next_offsets) {
            match happened {
                Happened::Hint(thread, address) => {
                    self.walk.steps.push(WalkStep::Hint(thread, address));
                }
                Happened::Pass(raw) => self.pass(raw, next_offset),
                Happened::Turn(Turn::Fork) => self.walk.steps.push(WalkStep::Restart),
                Happened::Turn(Turn::Exec) => {
                    self.walk.steps.push(WalkStep::Replaced);
                    self.begun = false;
                }
            }
        }
    }

    fn pass(&mut self, raw: Raw, next_offset: Option<u64>) {
        let mut changed = self.choose_look(&raw);
        changed |= self.learn_regions(&raw);
        let balances = self.balances(&raw);
        changed |= self.learn_traits(&raw, balances);
        if changed || !self.begun {
            self.begun = true;
            let threads = self.looks.get(self.look).map_or(1, |look| look.threads);
            self.walk.steps.push(WalkStep::Regions(self.regions.clone(), threads));
        }
        self.walk.inferred.bound_passes += u64::from(!balances);
        let next = next_offset.filter(|_| self.walk.source == Source::Tracepoints);
        let Scanned { parts, forced, stop } =
            next.map_or_else(Scanned::default, |next| scanned(&self.regions, &raw, next));
        let armed = |said: &Said| match *said {
            Said::Armed { start, end, changed } => Some((start..end, changed?)),
            Said::Noted { .. } => None,
        };
        self.walk.steps.push(WalkStep::Pass(Pass {
            time: raw.time,
            at: raw.at,
            thread: raw.thread,
            balances,
            lines: raw.said.iter().filter_map(line).collect(),
            changed: raw.said.iter().filter_map(armed).collect(),
            scanned: parts,
            forced,
            stop,
        }));
    }

    /// Takes the look that fits a pass best: the last one before it, or the next one if the regions
    /// had changed by then. Returns whether it is another one.
    fn choose_look(&mut self, raw: &Raw) -> bool {
        let before = self.look;
        let later = self.looks[self.look..].iter().skip(1);
        self.look += later.take_while(|look| look.time <= raw.time).count();
        let source = self.walk.source;
        let fit = |look: usize| self.looks.get(look).map(|look| fit(&look.regions, raw, source));
        if fit(self.look + 1) > fit(self.look) {
            self.look += 1;
            self.walk.inferred.late_looks += 1;
        }
        if self.look == before && self.begun {
            return false;
        }
        let Some(look) = self.looks.get(self.look) else { return false };
        self.regions.clone_from(&look.regions);
        true
    }

    /// Adds the regions that a pass names and no look has found.
    fn learn_regions(&mut self, raw: &Raw) -> bool {
        let mut learnt = false;
        for said in &raw.said {
            let &Said::Noted { start, end, reason } = said else { continue };
            let first = self.regions.partition_point(|(range, _)| range.end <= start);
            if self.regions.get(first).is_some_and(|(range, _)| *range == (start..end)) {
                continue;
            }
            let behind = self.regions.partition_point(|(range, _)| range.start < end);
            self.regions.splice(first..behind, [(start..end, traits_by(reason))]);
            self.walk.inferred.regions += 1;
            learnt = true;
        }
        learnt
    }

    /// Returns `true` if the scanning thread's own policy lets pages follow. That holds unless all
    /// regions that leave the choice to it are unsuitable.
    fn balances(&self, raw: &Raw) -> bool {
        let (mut left_out, mut taken) = (0, 0);
        for said in &raw.said {
            let (start, unsuitable) = match *said {
                Said::Noted { start, reason, .. } => {
                    (start, reason == Some(SkipReason::Unsuitable))
                }
                Said::Armed { start, .. } => (start, false),
            };
            let Some((_, traits)) = region_at(&self.regions, start) else { continue };
            if traits.movable && traits.policy.is_none() {
                *(if unsuitable { &mut left_out } else { &mut taken }) += 1;
            }
        }
        taken > 0 || left_out == 0
    }

    /// Corrects traits that contradict the lines of a pass.
    fn learn_traits(&mut self, raw: &Raw, balances: bool) -> bool {
        let mut learnt = false;
        for said in &raw.said {
            let (start, reason) = match *said {
                Said::Noted { start, reason: Some(reason), .. } => (start, Some(reason)),
                Said::Noted { .. } => continue,
                Said::Armed { start, .. } => (start, None),
            };
            let place = self.regions.partition_point(|(range, _)| range.end <= start);
            let found = self.regions.get_mut(place).filter(|(range, _)| range.start <= start);
            let Some((_, traits)) = found else { continue };
            let corrected = corrected(*traits, reason, balances);
            learnt |= corrected != *traits;
            self.walk.inferred.traits += u64::from(corrected != *traits);
            *traits = corrected;
        }
        learnt
    }
}

/// Returns for each entry the offset with which the next pass begins.
fn next_offsets(happened: &[Happened]) -> Vec<Option<u64>> {
    let mut next = None;
    let mut offsets: Vec<Option<u64>> = happened
        .iter()
        .rev()
        .map(|happened| match happened {
            Happened::Hint(..) | Happened::Turn(_) => None,
            Happened::Pass(raw) => std::mem::replace(&mut next, raw.offset),
        })
        .collect();
    offsets.reverse();
    offsets
}

fn line(said: &Said) -> Option<Line> {
    Some(match *said {
        Said::Noted { start, reason, .. } => Line::Noted(start, reason?),
        Said::Armed { start, end, .. } => Line::Armed(start, end),
    })
}

/// Returns the number of lines of a pass that fit to regions, minus those that do not. If every
/// region must have a line, also minus the regions over which the pass went without one.
fn fit(regions: &[Region], raw: &Raw, source: Source) -> i64 {
    let fits = |said: &Said| match *said {
        Said::Noted { start, end, .. } => {
            region_at(regions, start).is_some_and(|(range, _)| *range == (start..end))
        }
        Said::Armed { start, end, .. } => {
            region_at(regions, start).is_some_and(|(range, _)| end <= range.end)
        }
    };
    let lines: i64 = raw.said.iter().map(|said| if fits(said) { 1 } else { -1 }).sum();
    let starts = raw.said.iter().map(|said| match *said {
        Said::Noted { start, .. } | Said::Armed { start, .. } => start,
    });
    let starts: BTreeSet<u64> = starts.collect();
    let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else { return lines };
    let is_silent = |(range, _): &&Region| {
        first <= range.start && range.end <= last && starts.range(range.clone()).next().is_none()
    };
    match source {
        Source::Probes => lines - regions.iter().filter(is_silent).count() as i64,
        Source::Tracepoints => lines,
    }
}

/// Returns the traits of a region for which a pass gives this reason.
fn traits_by(reason: Option<SkipReason>) -> Traits {
    let any = Traits::ANONYMOUS;
    match reason {
        Some(SkipReason::Unsuitable) => Traits { movable: false, ..any },
        Some(SkipReason::SharedRo) => Traits { file: true, writable: false, ..any },
        Some(SkipReason::Inaccessible) => Traits { readable: false, writable: false, ..any },
        _ => any,
    }
}

/// Returns the corrected traits of a region for which a pass gives this reason; without a reason
/// the pass scanned it.
fn corrected(traits: Traits, reason: Option<SkipReason>, balances: bool) -> Traits {
    let follows = match traits.policy {
        Some(policy) => policy == Policy::Balancing,
        None => balances,
    };
    match (reason, traits.movable && follows) {
        (Some(SkipReason::Unsuitable), true) => Traits { policy: Some(Policy::Fixed), ..traits },
        (Some(SkipReason::Unsuitable), false) | (_, true) => traits,
        (_, false) => {
            let policy = if follows { traits.policy } else { Some(Policy::Balancing) };
            Traits { movable: true, policy, ..traits }
        }
    }
}

/// The regions that a pass scanned.
#[derive(Default)]
struct Scanned {
    parts: Vec<Range<u64>>,
    forced: Option<Range<u64>>,
    stop: Option<u64>,
}

/// The parts of regions that a pass scanned, of which it says nothing: they lie between those that
/// it left out, and end where the next pass begins.
fn scanned(regions: &[Region], raw: &Raw, next: u64) -> Scanned {
    let from = raw.offset.unwrap_or(0);
    let noted: Vec<(u64, Option<SkipReason>)> = raw
        .said
        .iter()
        .filter_map(|said| match *said {
            Said::Noted { start, reason, .. } => Some((start, reason)),
            Said::Armed { .. } => None,
        })
        .collect();
    // A walk that is forced begins again, and scans one region.
    let again = noted.windows(2).position(|pair| pair[1].0 <= pair[0].0 && !remarks(pair[0].1));
    let first_walk = again.map_or(&noted[..], |place| &noted[..=place]);
    let stop = if again.is_some() || next <= from { u64::MAX } else { next };
    let left_out = first_walk.iter().filter(|(_, reason)| !remarks(*reason));
    let left_out: BTreeSet<u64> = left_out.map(|&(start, _)| start).collect();
    let part = |(range, _): &Region| {
        let part = range.start.max(from)..range.end.min(stop);
        (part.start < part.end && !left_out.contains(&range.start)).then_some(part)
    };
    let is_forced = again.is_some() && next > 0;
    let ends_in = |(range, _): &&Region| is_forced && range.start < next && next <= range.end;
    Scanned {
        parts: regions.iter().filter_map(part).collect(),
        forced: regions.iter().find(ends_in).map(|(range, _)| range.start..next),
        stop: Some(if next == 0 { u64::MAX } else { next }),
    }
}

/// Returns `true` if it is a remark on a region that is scanned all the same.
fn remarks(reason: Option<SkipReason>) -> bool {
    reason == Some(SkipReason::IgnorePidInactive)
}
