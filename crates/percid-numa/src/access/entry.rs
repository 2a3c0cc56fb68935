//! A registered region as the balancer knows it: what it is, and what was done to it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Relaxed},
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use percid_rules::scan::Reason;

use crate::access::pages::Pages;
use crate::access::write_protect::Monitor;
use crate::access_method::AccessMethod;
use crate::lock::lock;

/// What was done to a region, for reports.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) skipped: [u64; Reason::ALL.len()],
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

/// A region as the balancer knows it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) range: Range<usize>,
    pub(crate) access: AccessMethod,
    /// `None` where nothing is ever armed: a machine with one node.
    pub(crate) pages: Option<Pages>,
    pub(crate) tally: Mutex<Tally>,
    /// Distinct bits of the threads that used it of late, as of the last pass.
    pub(crate) active: AtomicU32,
    /// Whether its memory is no longer what was registered.
    pub(crate) gone: AtomicBool,
    /// Lets writers through, where writes are seen.
    pub(crate) monitor: Option<Arc<Monitor>>,
    /// Whether the kernel's own balancing was made to leave it alone.
    pub(crate) is_kept_from_kernel: bool,
    /// Whether some of its memory could not be armed because it is not what was registered.
    pub(crate) vanished: AtomicBool,
}

impl Entry {
    /// Marks the region as gone. Returns whether it was not before.
    pub(crate) fn mark_gone(&self) -> bool {
        !self.gone.swap(true, AcqRel)
    }

    /// Returns how many grains are to move; none of what is there in place of a region that is gone.
    pub(crate) fn pending(&self) -> u64 {
        let is_there = |_: &&Pages| !self.gone.load(Relaxed);
        self.pages.as_ref().filter(is_there).map_or(0, |pages| pages.pending())
    }

    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }
}
