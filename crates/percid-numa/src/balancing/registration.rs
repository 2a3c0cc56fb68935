//! The registration of regions.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::access::pages::{Layout, Pages};
use crate::access::region_record::RegionRecord;
use crate::access::trap;
use crate::access::wakeup;
use crate::access::write_protect::Monitor;
use crate::access_method::AccessMethod;
use crate::balancing::mapping;
use crate::balancing::shared::Inner;
use crate::balancing::state::Change;
use crate::error::RegisterError;
use crate::lock::lock;
use crate::sys::{huge, memory, nodes};

/// log2 of the grain size of a region with trapped or detected accesses: 64 KiB. Every armed grain
/// of a trapped region may become a separate mapping, and a process can have 65530 by default. If
/// writes are detected, each detected write puts a thread to sleep, for hardly longer than with
/// grains of a page, of which there are 16 times as many.
const FAULT_SHIFT: u32 = 16;

impl Inner {
    /// Registers memory.
    pub(crate) fn register(
        &self,
        start: *const u8,
        bytes: usize,
        access: AccessMethod,
    ) -> Result<Arc<RegionRecord>, RegisterError> {
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
        let entry = Arc::new(RegionRecord {
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
        wakeup::notify();
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
    pub(crate) fn forget(&self, entry: &RegionRecord) {
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
}
