//! The regions, and what was done and seen so far: all that threads of the program wait for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use percid_rules::scan::{AccessCounts, Settings, Traits, adapted_period};

use crate::access::entry::Entry;
use crate::access::pages::Pages;
use crate::access::write_protect::Monitor;
use crate::error::RegisterError;
use crate::inner::log::Log;
use crate::migrate;
use crate::migrate::throughput::Throughput;

/// The assumed speed of the first pass: 4 us a page. Machines were seen to need 0.1 to 0.3 us,
/// emulated ones some 20.
const FIRST_THROUGHPUT: Throughput = Throughput::assumed(1e9);

/// What the scan does not know yet.
#[derive(Debug)]
pub(crate) enum Change {
    Registered(Range<u64>, Traits),
    Unregistered(u64),
}

/// What threads of the program change and read.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) entries: BTreeMap<usize, Arc<Entry>>,
    /// In order, since the last pass.
    pub(crate) changes: Vec<Change>,
    pub(crate) log: Log,
    /// Of the scan, as of the last pass.
    pub(crate) sequence: i64,
    pub(crate) passes: u64,
    pub(crate) blind_passes: u64,
    pub(crate) scan_time: Duration,
    pub(crate) move_time: Duration,
    pub(crate) period: Duration,
    pub(crate) scan_throughput: Throughput,
    pub(crate) batch_size: migrate::Size,
    /// What had been seen when the period was adapted last, and pages that could not be moved
    /// since.
    seen_before: AccessCounts,
    pub(crate) failed: u64,
    /// Where the last batch came from.
    pub(crate) moved_last: usize,
    /// The monitor, while there are regions that need it.
    pub(crate) monitor: Weak<Monitor>,
}

impl State {
    pub(crate) fn new(settings: &Settings) -> State {
        State {
            entries: BTreeMap::new(),
            changes: Vec::new(),
            log: Log::default(),
            sequence: 0,
            passes: 0,
            blind_passes: 0,
            scan_time: Duration::ZERO,
            move_time: Duration::ZERO,
            period: settings.period_min,
            scan_throughput: FIRST_THROUGHPUT,
            batch_size: migrate::Size::FIRST,
            seen_before: AccessCounts::default(),
            failed: 0,
            moved_last: 0,
            monitor: Weak::new(),
        }
    }

    /// Returns the monitor: the one there is, or a new one.
    pub(crate) fn monitor(&mut self) -> Result<Arc<Monitor>, RegisterError> {
        if let Some(monitor) = self.monitor.upgrade() {
            return Ok(monitor);
        }
        let monitor = Arc::new(Monitor::start()?);
        self.monitor = Arc::downgrade(&monitor);
        Ok(monitor)
    }

    pub(crate) fn pages(&self) -> impl Iterator<Item = &Pages> {
        self.entries.values().filter_map(|entry| entry.pages.as_ref())
    }

    fn seen(&self) -> AccessCounts {
        self.pages().map(|pages| pages.seen()).fold(AccessCounts::default(), |sum, seen| {
            AccessCounts {
                local: sum.local + seen.local,
                remote: sum.remote + seen.remote,
                private: sum.private + seen.private,
                shared: sum.shared + seen.shared,
                failed: 0,
            }
        })
    }

    /// Ends a sequence: adapts the period to what was seen in it, in regions of `bytes` together.
    pub(crate) fn adapt(&mut self, settings: &Settings, bytes: u64) {
        let (seen, before) = (self.seen(), self.seen_before);
        // The counts of regions that were unregistered meanwhile are gone.
        let new = AccessCounts {
            local: seen.local.saturating_sub(before.local),
            remote: seen.remote.saturating_sub(before.remote),
            private: seen.private.saturating_sub(before.private),
            shared: seen.shared.saturating_sub(before.shared),
            failed: std::mem::take(&mut self.failed),
        };
        self.period = adapted_period(self.period, &new, settings, bytes);
        self.seen_before = seen;
        self.pages().for_each(|pages| pages.age());
    }

    pub(crate) fn overlapping(&self, range: &Range<usize>) -> Option<usize> {
        let below = self.entries.range(..range.end).next_back()?.1;
        (below.range.end > range.start).then_some(below.range.start)
    }
}
