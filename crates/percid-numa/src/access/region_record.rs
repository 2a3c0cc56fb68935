//! A registered region in the balancer: its properties and its counts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Relaxed},
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use percid_rules::scan::SkipReason;

use crate::access::pages::Pages;
use crate::access::write_protect::Monitor;
use crate::access_method::AccessMethod;
use crate::lock::lock;

/// Counts of the balancer's work on a region, for reports.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) skipped: [u64; SkipReason::ALL.len()],
    pub(crate) scanned: u64,
    pub(crate) moved: u64,
    pub(crate) failed: BTreeMap<i32, u64>,
    pub(crate) scan_time: Duration,
    pub(crate) move_time: Duration,
}

impl Tally {
    pub(crate) fn fail(&mut self, errno: i32, pages: u64) {
        *self.failed.entry(errno).or_default() += pages;
    }
}

/// A registered region, as the balancer stores it.
#[derive(Debug)]
pub(crate) struct RegionRecord {
    pub(crate) range: Range<usize>,
    pub(crate) access: AccessMethod,
    /// `None` if nothing is ever armed: a machine with one node.
    pub(crate) pages: Option<Pages>,
    pub(crate) tally: Mutex<Tally>,
    /// Number of distinct bits of the threads that used the region recently, as of the last pass.
    pub(crate) active: AtomicU32,
    /// `true` if the memory is no longer what was registered.
    pub(crate) gone: AtomicBool,
    /// The monitor, which lets waiting writers continue; only if accesses are detected by writes.
    pub(crate) monitor: Option<Arc<Monitor>>,
    /// `true` if the kernel's own balancing is disabled for this region.
    pub(crate) is_kept_from_kernel: bool,
    /// `true` if some of the memory could not be armed because it is not what was registered.
    pub(crate) vanished: AtomicBool,
}

impl RegionRecord {
    /// A region of these pages, of which nothing else is known.
    #[cfg(test)]
    pub(crate) fn from_pages(pages: Pages) -> RegionRecord {
        let start = pages.layout.start;
        RegionRecord {
            range: start..start + pages.layout.bytes,
            access: AccessMethod::Reported,
            pages: Some(pages),
            tally: Mutex::default(),
            active: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            monitor: None,
            is_kept_from_kernel: false,
            vanished: AtomicBool::new(false),
        }
    }

    /// Marks the region as gone. Returns `true` if it was not marked before.
    pub(crate) fn mark_gone(&self) -> bool {
        !self.gone.swap(true, AcqRel)
    }

    /// Returns the number of grains with a pending move; 0 if the region is gone, because other
    /// memory may be mapped there.
    pub(crate) fn pending(&self) -> u64 {
        let is_there = |_: &&Pages| !self.gone.load(Relaxed);
        self.pages.as_ref().filter(is_there).map_or(0, |pages| pages.pending())
    }

    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }
}
