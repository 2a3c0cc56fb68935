//! What the balancer, its thread and its regions share: the scan, the regions, and what was done so
//! far.

pub(crate) mod arming;
mod background;
mod describe;
mod fork_check;
mod log;
mod mapping;
mod state;

pub(crate) use background::Background;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use percid_rules::scan::{HUGE_PAGE, Rules, Scan, Scanner, Settings};

use crate::access::entry::Entry;
use crate::access::pages::{Layout, Pages};
use crate::access::trap;
use crate::access::write_protect::Monitor;
use crate::access_method::AccessMethod;
use crate::done::{Batch, Pass};
use crate::error::RegisterError;
use crate::inner::arming::PassEffects;
use crate::inner::fork_check::ForkCheck;
use crate::inner::log::Log;
use crate::inner::state::{Change, State};
use crate::lock::lock;
use crate::migrate;
use crate::report::Report;
use crate::report::event::Event;
use crate::sys::maps::{self, Mapping};
use crate::sys::{clock, huge, memory, nodes, process};

/// log2 of a grain of a region whose use is seen by faults: 64 KiB. Where it is trapped every armed
/// grain may become a mapping of its own, of which a process can have 65530 by default. Where
/// writes are seen, each one that is caught puts a thread to sleep, for hardly longer than with
/// grains of a page, of which there are 16 times as many.
const FAULT_SHIFT: u32 = 16;

/// All passes together may take one part in 33 of the time, 3 %, from the beginning on. The
/// published system rests for 32 times what the last pass took, which is 3.03 % in the long run.
pub(crate) const REST: u32 = 33;

/// What the balancer, its thread and its regions share. A state that a thread of the parent was
/// changing at the time of a `fork` is of no use to the child, so the child leaves all of it alone.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    rules: Rules,
    /// The nodes that pages may be moved to.
    nodes: Vec<u32>,
    fork_check: ForkCheck,
    began: Instant,
    /// Locked for the whole of a pass, and before `state` if both are.
    scan: Mutex<Scan>,
    /// Locked for moments, since threads of the program wait for it.
    state: Mutex<State>,
}

impl Inner {
    pub(crate) fn new(settings: Settings, rules: Rules) -> Inner {
        Inner {
            settings,
            rules,
            nodes: nodes::usable_nodes(),
            fork_check: ForkCheck::new(),
            began: Instant::now(),
            scan: Mutex::new(Scan::new()),
            state: Mutex::new(State::new(&settings)),
        }
    }

    /// Takes the decisions since the last call.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        lock(&self.state).log.take()
    }

    pub(crate) fn has_nodes(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Returns whether this is a child of the process that made the balancer.
    pub(crate) fn is_forked(&self) -> bool {
        self.fork_check.is_child()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.has_nodes() && !self.is_forked()
    }

    /// Registers memory.
    pub(crate) fn register(
        &self,
        start: *const u8,
        bytes: usize,
        access: AccessMethod,
    ) -> Result<Arc<Entry>, RegisterError> {
        if self.is_forked() {
            return Err(RegisterError::Forked);
        }
        let start = start.expose_provenance();
        let range =
            start..start.checked_add(bytes).ok_or(RegisterError::NotMapped { address: start })?;
        mapping::check_shape(&range)?;
        let mut state = lock(&self.state);
        if let Some(region) = state.overlapping(&range) {
            return Err(RegisterError::Overlaps { region });
        }
        // The locks are held until the region is entered: what is found stays valid.
        let overlaps = |region| RegisterError::Overlaps { region };
        let _lock = match self.has_nodes() {
            true => Some(trap::enter(&range).map_err(overlaps)?),
            false => None,
        };
        let behind = mapping::look_up(&range)?;
        behind.check(&range, access)?;
        let monitor = match access == AccessMethod::Written && self.has_nodes() {
            true => Some(state.monitor()?),
            false => None,
        };
        let pages = match self.has_nodes() {
            true => Some(self.track(&range, access, behind.rights, monitor.as_deref())?),
            false => None,
        };
        let entry = Arc::new(Entry {
            range: range.clone(),
            access,
            pages,
            tally: Mutex::default(),
            active: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            monitor,
            vanished: AtomicBool::new(false),
        });
        if entry.pages.is_some() {
            let range = range.start as u64..range.end as u64;
            state.changes.push(Change::Registered(range, behind.traits));
        }
        state.entries.insert(range.start, Arc::clone(&entry));
        Ok(entry)
    }

    /// Prepares to keep track of a region's pages.
    fn track(
        &self,
        range: &Range<usize>,
        access: AccessMethod,
        rights: i32,
        monitor: Option<&Monitor>,
    ) -> Result<Pages, RegisterError> {
        let page = memory::page_size().trailing_zeros();
        let least = if access == AccessMethod::Reported { page } else { FAULT_SHIFT.max(page) };
        let layout = Layout {
            start: range.start,
            bytes: range.len(),
            shift: huge::pages_in(range).map_or(least, |huge| huge.max(least)),
            nodes: self.nodes.last().map_or(1, |last| *last as usize + 1),
            rights,
            width: self.rules.width,
            backoff: self.settings.backoff,
        };
        // The monitor must not write to memory that it serves.
        let map = if monitor.is_some() { memory::map_under_a_name } else { memory::map };
        let pages = Pages::new(layout, &self.nodes, map).ok_or(RegisterError::NoMemory)?;
        if let Some(monitor) = monitor {
            monitor.insert(&pages)?;
        }
        if access == AccessMethod::Trapped {
            if !trap::prepare() {
                return Err(RegisterError::HandlerReplaced);
            }
            if !trap::insert(&pages) {
                return Err(RegisterError::TooManyTrapped);
            }
        }
        Ok(pages)
    }

    /// Unregisters a region.
    pub(crate) fn forget(&self, entry: &Entry) {
        if self.is_forked() {
            return;
        }
        let mut state = lock(&self.state);
        state.changes.push(Change::Unregistered(entry.range.start as u64));
        state.entries.remove(&entry.range.start);
    }

    /// Returns the monitor's thread, which is none of the program's; 0 if there is none.
    pub(crate) fn monitor_thread(&self) -> u32 {
        lock(&self.state).monitor.upgrade().map_or(0, |monitor| monitor.thread())
    }

    /// Returns the time from one pass to the next, at present.
    pub(crate) fn period(&self) -> Duration {
        lock(&self.state).period
    }

    /// Returns how many bytes a pass may arm now without taking more than its share of the time, by
    /// what earlier passes took; `None` if that is less than the least that a pass arms.
    pub(crate) fn affordable(&self) -> Option<u64> {
        let state = lock(&self.state);
        let time = (self.began.elapsed() / (REST + 1)).saturating_sub(state.scan_time);
        let fits = state.scan_throughput.fits(time);
        (fits >= HUGE_PAGE).then_some(self.settings.scan_size.min(fits))
    }

    /// A pass that arms this many bytes at most, up to the next multiple of [`HUGE_PAGE`].
    pub(crate) fn pass_over(&self, scan_size: u64, scanner: Scanner) -> Pass {
        self.pass_by(&Settings { scan_size, ..self.settings }, scanner)
    }

    /// Makes a pass on behalf of the calling thread, however long it takes.
    pub(crate) fn pass(&self) -> Pass {
        let balances = nodes::own_policy().is_none_or(|mode| mode.is_default() || mode.balances());
        let threads = process::thread_ids().len().max(1) as u32;
        let scanner = Scanner { thread: process::thread_id(), balances, threads };
        self.pass_by(&self.settings, scanner)
    }

    /// Returns how long to rest after a pass; not beyond the longest period.
    pub(crate) fn pause_after(&self, pass: &Pass) -> Duration {
        let longest = self.settings.period_max;
        self.period().max(pass.took.saturating_mul(REST).min(longest))
    }

    /// Adds the time that choosing a thread took.
    pub(crate) fn add_scan_time(&self, took: Duration) {
        lock(&self.state).scan_time += took;
    }

    fn pass_by(&self, settings: &Settings, scanner: Scanner) -> Pass {
        let began = clock::own_run_time();
        let mut scan = lock(&self.scan);
        let Some(entries) = self.begin_pass(&mut scan) else { return Pass::default() };
        let mut log = Log::default();
        log.push(Event::Pass { thread: scanner.thread, sequence: scan.sequence() });
        let before = scan.sequence();
        let mut effects = PassEffects::new(&entries, &mut log);
        let mappings = maps::all();
        match &mappings {
            Some(mappings) => {
                refresh(&mut scan, &entries, effects.log, mappings);
                scan.pass(scanner, self.began.elapsed(), settings, &self.rules, &mut effects);
            }
            None => effects.log.push(Event::Blind),
        }
        let PassEffects { looked_at, armed, skipped, handler_replaced, .. } = effects;
        if handler_replaced {
            log.push(Event::HandlerReplaced);
        }
        for (start, entry) in &entries {
            entry.active.store(scan.users(*start as u64), Relaxed);
        }
        let took = clock::own_run_time().saturating_sub(began);
        let mut state = lock(&self.state);
        if scan.sequence() != before {
            state.adapt(&self.settings, scan.bytes());
        }
        state.log.append(log);
        state.sequence = scan.sequence();
        state.passes += 1;
        state.blind_passes += u64::from(mappings.is_none());
        state.scan_time += took;
        state.scan_throughput.learn(looked_at, took);
        Pass { armed, skipped, took }
    }

    /// Hands changes of the regions to the scan, and the usable nodes to the regions. Returns the
    /// regions of this pass (one that is unregistered meanwhile stays, and is left alone); `None`
    /// if only one node is left to use.
    fn begin_pass(&self, scan: &mut Scan) -> Option<BTreeMap<usize, Arc<Entry>>> {
        let (changes, entries) = {
            let mut state = lock(&self.state);
            (std::mem::take(&mut state.changes), state.entries.clone())
        };
        for change in changes {
            match change {
                Change::Registered(range, traits) => _ = scan.add(range, traits),
                Change::Unregistered(start) => _ = scan.remove(start),
            }
        }
        let nodes = nodes::usable_nodes();
        let pages = entries.values().filter_map(|entry| entry.pages.as_ref());
        pages.for_each(|pages| pages.set_nodes(&nodes));
        (nodes.len() > 1).then_some(entries)
    }

    /// Moves a batch, of another region each time.
    pub(crate) fn move_batch(&self) -> Batch {
        let began = Instant::now();
        let next = {
            let state = lock(&self.state);
            let after = state.entries.range(state.moved_last + 1..);
            let all = after.chain(state.entries.range(..=state.moved_last));
            let pending =
                |entry: &&Arc<Entry>| entry.pages.as_ref().is_some_and(|pages| pages.pending() > 0);
            all.map(|(_, entry)| entry).find(pending).cloned()
        };
        let Some(entry) = next else { return Batch::default() };
        let mut size = lock(&self.state).batch_size;
        let mut batch = migrate::move_some(&entry, &self.settings, &mut size);
        let mut state = lock(&self.state);
        state.batch_size = size;
        state.moved_last = entry.range.start;
        state.failed += batch.failed;
        state.move_time += began.elapsed();
        let (region, Batch { moved: pages, failed, .. }) = (entry.range.start, batch);
        state.log.push(Event::Moved { region, pages, failed });
        batch.more = state.pages().any(|pages| pages.pending() > 0);
        batch
    }

    /// Returns what was done and seen so far.
    pub(crate) fn report(&self) -> Report {
        let threads = process::thread_ids();
        let mut report = Report {
            nodes: self.nodes.clone(),
            period: self.settings.period_min,
            age: self.began.elapsed(),
            threads: threads.len(),
            collisions: self.rules.width.collisions(&threads),
            ..Report::default()
        };
        if self.is_forked() {
            return report;
        }
        let entries: Vec<Arc<Entry>> = {
            let state = lock(&self.state);
            report.sequence = state.sequence;
            (report.passes, report.blind_passes) = (state.passes, state.blind_passes);
            report.period = state.period;
            (report.scan_time, report.move_time) = (state.scan_time, state.move_time);
            report.events_lost = state.log.lost();
            state.entries.values().cloned().collect()
        };
        report.regions = entries.iter().map(|entry| describe::describe(entry)).collect();
        report
    }
}

/// Looks at all regions again before a pass: whether they are still there, and which threads used
/// them.
fn refresh(
    scan: &mut Scan,
    entries: &BTreeMap<usize, Arc<Entry>>,
    log: &mut Log,
    mappings: &[Mapping],
) {
    for (&start, entry) in entries {
        let Some(pages) = entry.pages.as_ref().filter(|_| !entry.gone.load(Relaxed)) else {
            continue;
        };
        let trapped = entry.access == AccessMethod::Trapped;
        match mapping::look_again(mappings, &entry.range, pages.layout.rights, trapped) {
            Some(traits) if !entry.vanished.load(Relaxed) => scan.set_traits(start as u64, traits),
            _ if entry.mark_gone() => {
                scan.remove(start as u64);
                log.push(Event::Gone { region: start });
                continue;
            }
            _ => continue,
        }
        scan.used_by(start as u64, pages.take_users());
        pages.sequence.store(scan.sequence(), Relaxed);
        if trapped {
            arming::keep_to_budget(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A balancer of this age that has spent `spent` on passes.
    fn inner(age: Duration, spent: Duration) -> Inner {
        let mut inner = Inner::new(Settings::default(), Rules::default());
        inner.began = inner.began.checked_sub(age).expect("a machine that runs for long enough");
        lock(&inner.state).scan_time = spent;
        inner
    }

    #[test]
    fn passes_cost_three_percent_of_the_time_and_no_more() {
        let (second, all) = (Duration::from_secs(1), Settings::default().scan_size);
        assert_eq!(inner(34 * second, second + second / 10).affordable(), None, "all is spent");
        assert_eq!(inner(Duration::ZERO, Duration::ZERO).affordable(), None, "nothing yet");
        assert_eq!(inner(34 * second, second / 2).affordable(), Some(all));
        let little = inner(34 * second, second - second / 100).affordable();
        // A hundredth of a second, at 1 GB a second; it grows older while the test runs.
        assert!(little.is_some_and(|bytes| (10_000_000..all).contains(&bytes)), "{little:?}");
    }
}
