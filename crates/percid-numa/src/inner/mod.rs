//! Shared state of a balancer, its background thread and its regions.

pub(crate) mod arming;
mod background;
mod demotion;
mod describe;
mod fork_check;
mod log;
mod mapping;
mod periods;
mod state;
mod timeline;
mod whereabouts;

pub(crate) use background::Background;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use percid_rules::scan::{Rules, Scan, Scanner, Settings};

use crate::access::bell;
use crate::access::entry::Entry;
use crate::access::pages::{Layout, Pace, Pages};
use crate::access::trap;
use crate::access::write_protect::Monitor;
use crate::access_method::AccessMethod;
use crate::done::{Batch, Pass};
use crate::error::RegisterError;
use crate::inner::arming::PassEffects;
use crate::inner::fork_check::ForkCheck;
use crate::inner::log::Log;
use crate::inner::state::{Change, State};
use crate::kernel::Linux;
use crate::lock::lock;
use crate::migrate;
use crate::report::Report;
use crate::report::event::Event;
use crate::sys::maps::{self, Mapping};
use crate::sys::{clock, huge, memory, nodes, process};
use crate::tiers::{self, Placement};

/// log2 of the grain size of a region with trapped or detected accesses: 64 KiB. Every armed grain
/// of a trapped region may become a separate mapping, and a process can have 65530 by default. If
/// writes are detected, each detected write puts a thread to sleep, for hardly longer than with
/// grains of a page, of which there are 16 times as many.
const FAULT_SHIFT: u32 = 16;

/// All passes together may take one part in 33 of the run time of the process's threads, 3 %, from
/// the beginning. In the published system a thread runs for 32 times the duration of its last pass
/// before it makes another one, which is 3.03 % in the long run.
pub(crate) const REST: u32 = 33;

/// Divisor of the run time for a stricter limit: beyond it, no work begins that may take more time.
const BUDGET: u32 = 36;

/// Shared state of a balancer, its background thread and its regions. If a thread of the parent was
/// changing it at the time of a `fork`, the child cannot use it, so the child leaves all of it
/// alone.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    rules: Rules,
    /// The nodes that have memory. The subset that the process may use can change at any time.
    nodes: Vec<u32>,
    /// `None` if memory tiers are not used.
    tiers: Option<Placement>,
    fork_check: ForkCheck,
    began: Instant,
    /// Run time of the process's threads at the creation of the balancer.
    ran_before: Duration,
    /// Locked for the whole of a pass, and before `state` if both are locked.
    scan: Mutex<Scan>,
    /// Locked only briefly, since threads of the program wait for it.
    state: Mutex<State>,
}

/// Sampling between passes: one grain in `SAMPLE`, but at least `FEWEST_SAMPLES` if there are so
/// many.
const SAMPLE: usize = 64;
const FEWEST_SAMPLES: usize = 16;

/// Multiplier from the golden ratio: its consecutive multiples are spread evenly over any small
/// range (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
const GOLDEN: usize = 0x9e37_79b1;

impl Inner {
    pub(crate) fn new(settings: Settings, rules: Rules) -> Inner {
        Inner {
            settings,
            rules,
            tiers: Placement::new(&Linux, &settings, &nodes::usable_nodes()),
            nodes: nodes::nodes_with_memory(),
            fork_check: ForkCheck::new(),
            began: Instant::now(),
            ran_before: clock::process_run_time(),
            scan: Mutex::new(Scan::new()),
            state: Mutex::new(State::new(&settings)),
        }
    }

    /// Takes the events since the last call.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        lock(&self.state).log.take()
    }

    pub(crate) fn has_nodes(&self) -> bool {
        self.nodes.len() > 1
    }

    /// Returns `true` if this is a child of the process that made the balancer.
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
        // The locks are held until the region is inserted, so the results of the lookups stay
        // valid.
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
            true => Some(self.track(&range, access, &behind, monitor.as_deref())?),
            false => None,
        };
        // If the kernel balanced too, each side would undo the decisions of the other. Shared
        // memory is not changed, because other processes would get the policy too.
        let is_kept_from_kernel = pages.as_ref().is_some_and(|pages| pages.layout.anonymous)
            && nodes::kernel_balances()
            && nodes::keep_from_kernel(&range);
        let entry = Arc::new(Entry {
            range: range.clone(),
            access,
            pages,
            tally: Mutex::default(),
            active: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            monitor,
            vanished: AtomicBool::new(false),
            is_kept_from_kernel,
        });
        if entry.pages.is_some() {
            let range = range.start as u64..range.end as u64;
            state.changes.push(Change::Registered(range, behind.traits, self.began.elapsed()));
        }
        state.entries.insert(range.start, Arc::clone(&entry));
        let counts = state.counts();
        state.timeline.begin(self.began.elapsed(), counts);
        // New memory may be used in another way, whatever the periods have become.
        state.begin_again(&self.settings);
        bell::ring();
        Ok(entry)
    }

    /// Makes the state of a region's pages.
    fn track(
        &self,
        range: &Range<usize>,
        access: AccessMethod,
        behind: &mapping::Behind,
        monitor: Option<&Monitor>,
    ) -> Result<Pages, RegisterError> {
        let page = memory::page_size().trailing_zeros();
        let least = if access == AccessMethod::Reported { page } else { FAULT_SHIFT.max(page) };
        let layout = Layout {
            start: range.start,
            bytes: range.len(),
            shift: huge::pages_in(range).map_or(least, |huge| huge.max(least)),
            nodes: self.nodes.last().map_or(1, |last| *last as usize + 1),
            rights: behind.rights,
            width: self.rules.width,
            backoff: self.settings.backoff,
            anonymous: !behind.traits.file,
        };
        // The monitor must not write to memory that it monitors.
        let map = if monitor.is_some() { memory::map_under_a_name } else { memory::map };
        let mut pages =
            Pages::new(layout, &nodes::usable_nodes(), map).ok_or(RegisterError::NoMemory)?;
        if self.tiers.as_ref().is_some_and(|tiers| !tiers.track(&mut pages, access, map)) {
            return Err(RegisterError::NoMemory);
        }
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
        if entry.is_kept_from_kernel && !entry.gone.load(Relaxed) {
            nodes::give_to_kernel(&entry.range);
        }
    }

    /// Returns the number of the monitor's thread, which is not the program's; 0 if there is none.
    pub(crate) fn monitor_thread(&self) -> u32 {
        lock(&self.state).monitor.upgrade().map_or(0, |monitor| monitor.thread())
    }

    /// Returns the periods of some threads, in their order.
    pub(crate) fn periods_of(&self, threads: &[u32]) -> Vec<Duration> {
        let state = lock(&self.state);
        threads.iter().map(|&thread| state.periods.of(thread)).collect()
    }

    /// Restarts with the shortest periods if the use of the regions has changed. Returns `true` if
    /// this, or a registration, has done so since the last call.
    pub(crate) fn follow_change(&self) -> bool {
        let mut state = lock(&self.state);
        let changed = state.has_changed();
        if changed {
            let counts = state.counts();
            state.timeline.begin(self.began.elapsed(), counts);
            state.begin_again(&self.settings);
        }
        std::mem::take(&mut state.begins_again)
    }

    /// Returns the number of bytes that a pass may arm now without exceeding its share of the time,
    /// estimated from earlier passes. Returns `None` if that is less than the minimum of a pass.
    pub(crate) fn affordable(&self) -> Option<u64> {
        lock(&self.state).affordable(&self.settings, self.run_time())
    }

    /// Returns the run time of the process's threads since the balancer was made.
    fn run_time(&self) -> Duration {
        clock::process_run_time().saturating_sub(self.ran_before)
    }

    /// Makes a pass that arms this many bytes at most, rounded up to a multiple of [`HUGE_PAGE`].
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

    /// Records the time that choosing a thread took (with many threads, most of a pass): the next
    /// choice will take as long.
    pub(crate) fn note_choice(&self, took: Duration) {
        let mut state = lock(&self.state);
        state.scan_time += took;
        state.choice = took;
    }

    fn pass_by(&self, settings: &Settings, scanner: Scanner) -> Pass {
        let began = clock::own_run_time();
        let mut scan = lock(&self.scan);
        let Some(entries) = self.begin_pass(&mut scan) else { return Pass::default() };
        let mut log = Log::default();
        log.push(Event::Pass { thread: scanner.thread, sequence: scan.sequence() });
        let before = scan.sequence();
        let size = lock(&self.state).piece_size;
        let mut effects = PassEffects::new(&entries, &mut log, size);
        let mappings = maps::all();
        match &mappings {
            Some(mappings) => {
                refresh(&mut scan, &entries, effects.log, mappings);
                scan.pass(scanner, self.began.elapsed(), settings, &self.rules, &mut effects);
            }
            None => effects.log.push(Event::MappingsUnreadable),
        }
        let PassEffects { looked_at, armed, skipped, handler_replaced, size, .. } = effects;
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
        state.armed += armed;
        state.unreadable_passes += u64::from(mappings.is_none());
        state.scan_time += took;
        state.pass_size.learn(looked_at, took);
        state.piece_size = size;
        Pass { armed, skipped, took }
    }

    /// Arms again, at a pace, the grains for which further accesses decide. Returns the number of
    /// pages.
    pub(crate) fn look_again(&self, pace: Pace) -> u64 {
        let armed = self.look(pace);
        lock(&self.state).rearmed += armed;
        armed
    }

    /// Does the same if samples are among the grains: these decide nothing, and are not counted as
    /// looks.
    pub(crate) fn look(&self, pace: Pace) -> u64 {
        let unsettled = |entry: &&Arc<Entry>| {
            entry.pages.as_ref().is_some_and(|pages| pages.unsettled(pace) > 0)
        };
        let entries: Vec<Arc<Entry>> =
            lock(&self.state).entries.values().filter(unsettled).cloned().collect();
        if entries.is_empty() {
            return 0;
        }
        let began = clock::own_run_time();
        let again = |entry: &Arc<Entry>| {
            entry.pages.as_ref().map_or(0, |pages| arming::arm_again(entry, pages, pace))
        };
        let armed = entries.iter().map(again).sum();
        let mut state = lock(&self.state);
        state.scan_time += clock::own_run_time().saturating_sub(began);
        armed
    }

    /// Requests that a few grains of every region are armed soon, `most` at most. Another `turn`
    /// selects others.
    pub(crate) fn sample(&self, turn: usize, most: usize) {
        for pages in lock(&self.state).pages() {
            let grains = pages.layout.grains();
            let step = (grains / FEWEST_SAMPLES).clamp(1, SAMPLE).max(grains.div_ceil(most));
            let first = turn.wrapping_mul(GOLDEN) % step;
            (first..grains).step_by(step).for_each(|grain| _ = pages.ask_again(grain, Pace::Soon));
        }
    }

    /// Records which stages of placing memory were reached.
    pub(crate) fn note_progress(&self) {
        let mut state = lock(&self.state);
        let counts = state.counts();
        state.timeline.note(self.began.elapsed(), counts);
    }

    /// Returns the shortest time between two passes that the settings permit for the regions.
    pub(crate) fn least_period(&self) -> Duration {
        let bytes = lock(&self.state).entries.values().map(|entry| entry.range.len() as u64).sum();
        self.settings.periods(bytes).0
    }

    /// Returns the shortest period of the threads that were seen recently.
    pub(crate) fn shortest_period(&self) -> Duration {
        lock(&self.state).periods.shortest()
    }

    /// Passes changes of the regions to the scan, and the usable nodes to the regions. Returns the
    /// regions of this pass; a region that is unregistered later stays in it, and is skipped.
    /// Returns `None` if only one node is usable.
    fn begin_pass(&self, scan: &mut Scan) -> Option<BTreeMap<usize, Arc<Entry>>> {
        let (changes, entries) = {
            let mut state = lock(&self.state);
            (std::mem::take(&mut state.changes), state.entries.clone())
        };
        for change in changes {
            match change {
                Change::Registered(range, traits, at) => {
                    let start = range.start;
                    scan.add(range, traits);
                    // The delay of the region began at its registration, not with this pass.
                    scan.visit(start, at, &self.settings);
                }
                Change::Unregistered(start) => _ = scan.remove(start),
            }
        }
        let nodes = nodes::usable_nodes();
        let pages = entries.values().filter_map(|entry| entry.pages.as_ref());
        pages.for_each(|pages| pages.set_nodes(&nodes));
        if let Some(tiers) = &self.tiers {
            tiers.begin_pass(&Linux, &entries, &nodes);
        }
        (nodes.len() > 1).then_some(entries)
    }

    /// Returns the number of bytes that a batch moves at present.
    pub(crate) fn batch_bytes(&self) -> u64 {
        migrate::bytes(&self.settings, &lock(&self.state).batch_size)
    }

    /// Returns the number of bytes with a pending move.
    pub(crate) fn pending_bytes(&self) -> u64 {
        let state = lock(&self.state);
        let of = |entry: &Arc<Entry>| entry.pages.as_ref().map_or(0, |pages| pages.layout.shift);
        state.entries.values().map(|entry| entry.pending() << of(entry)).sum()
    }

    /// Moves a batch, each time of another region.
    pub(crate) fn move_batch(&self) -> Batch {
        let began = Instant::now();
        let next = {
            let state = lock(&self.state);
            let after = state.entries.range(state.moved_last + 1..);
            let all = after.chain(state.entries.range(..=state.moved_last));
            all.map(|(_, entry)| entry).find(|entry| entry.pending() > 0).cloned()
        };
        let Some(entry) = next else { return self.demote_batch() };
        let mut size = lock(&self.state).batch_size;
        let mut batch =
            migrate::move_some(&Linux, &entry, &self.settings, self.tiers.as_ref(), &mut size);
        let mut state = lock(&self.state);
        state.batch_size = size;
        state.moved_last = entry.range.start;
        state.failed += batch.failed;
        state.move_time += began.elapsed();
        state.timeline.moved(self.began.elapsed(), batch.moved);
        let (region, Batch { moved: pages, failed, .. }) = (entry.range.start, batch);
        state.log.push(Event::Moved { region, pages, failed });
        let mut entries = state.entries.values();
        batch.more = entries.any(|entry| entry.pending() > 0 || tiers::is_searched(entry));
        batch
    }

    /// Returns the results so far.
    pub(crate) fn report(&self) -> Report {
        let threads = process::thread_ids();
        let mut report = Report {
            nodes: self.nodes.clone(),
            period: self.settings.period_min,
            age: self.began.elapsed(),
            run_time: self.run_time(),
            threads: threads.len(),
            collisions: self.rules.width.collisions(&threads),
            ..Report::default()
        };
        if self.is_forked() {
            return report;
        }
        report.slow_nodes = self.tiers.as_ref().map_or(Vec::new(), Placement::slow_nodes);
        let entries: Vec<Arc<Entry>> = {
            let state = lock(&self.state);
            report.sequence = state.sequence;
            (report.passes, report.unreadable_passes) = (state.passes, state.unreadable_passes);
            report.period = state.periods.shortest();
            (report.scan_time, report.move_time) = (state.scan_time, state.move_time);
            report.events_lost = state.log.lost();
            report.timeline = state.timeline.episodes();
            state.entries.values().cloned().collect()
        };
        report.regions = entries.iter().map(|entry| describe::describe(entry)).collect();
        report
    }
}

/// Updates all regions before a pass: checks whether they still exist, and collects the threads
/// that used them.
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
        pages.sequence.store(scan.sequences_of(start as u64), Relaxed);
        if trapped {
            arming::keep_to_budget(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that a balancer may arm if the process has run for `ran` and passes took
    /// `spent` of that.
    fn affordable(ran: Duration, spent: Duration) -> Option<u64> {
        let mut state = State::new(&Settings::default());
        state.scan_time = spent;
        state.affordable(&Settings::default(), ran)
    }

    #[test]
    fn passes_cost_three_percent_of_the_time_and_no_more() {
        let (second, all) = (Duration::from_secs(1), Settings::default().scan_size);
        assert_eq!(affordable(36 * second, second + second / 10), None, "all is spent");
        assert_eq!(affordable(Duration::ZERO, Duration::ZERO), None, "nothing yet");
        assert_eq!(affordable(36 * second, second / 2), Some(all));
        // The time of the next choice of a thread counts too.
        let mut state = State::new(&Settings::default());
        state.choice = second;
        assert_eq!(state.affordable(&Settings::default(), 36 * second), None);
        assert_eq!(state.affordable(&Settings::default(), 72 * second), Some(all));
        let little = affordable(36 * second, second - second / 100);
        assert_eq!(little, Some(10_000_000), "a hundredth of a second, at 1 GB a second");
    }
}
