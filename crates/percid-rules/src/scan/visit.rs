//! The tests of one region in a pass, and the arming of one.

use core::ops::Range;
use core::time::Duration;

use super::region::{Memory, SkipReason};
use super::rules::Rules;
use super::settings::Settings;
use super::state::Scan;

/// The size of a huge page in bytes: a pass arms memory in pieces that end at multiples of it.
pub const HUGE_PAGE: u64 = 2 << 20;

/// Sequences in which activity does not count, because no access could be observed yet.
const BLIND_SEQUENCES: i64 = 2;

/// The thread for which a pass is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanner {
    /// The thread's number.
    pub thread: u32,
    /// `true` if the thread's own memory policy lets pages follow their users.
    pub balances: bool,
    /// Number of threads in the process.
    pub threads: u32,
}

/// The effects of a pass. A region is identified by its start address.
pub trait Effects {
    /// Arms the pages of a part of a region: the next access to each is observed. Returns the
    /// number of pages that were not armed before.
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64;

    /// Records the reason why a region is not scanned, or is.
    fn note(&mut self, region: u64, reason: SkipReason);
}

/// Effects behind a reference, which may be of any type.
impl<E: Effects + ?Sized> Effects for &mut E {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        (**self).arm(region, part)
    }

    fn note(&mut self, region: u64, reason: SkipReason) {
        (**self).note(region, reason);
    }
}

/// The end of a region's scan.
#[derive(PartialEq, Eq)]
pub(super) enum Scanned {
    Completely,
    BudgetSpent,
}

pub(super) struct Pass<'a, E> {
    pub(super) scan: &'a mut Scan,
    pub(super) scanner: Scanner,
    pub(super) now: Duration,
    pub(super) settings: &'a Settings,
    pub(super) rules: &'a Rules,
    pub(super) effects: &'a mut E,
    /// Bytes that may still be armed; `look` is the number that may still be inspected.
    pub(super) arm: i64,
    pub(super) look: i64,
}

impl<E: Effects> Pass<'_, E> {
    /// Returns the obstacle to a scan of the region, independently of its users.
    pub(super) fn obstacle(&mut self, index: usize) -> Option<SkipReason> {
        let (now, sequence) = (self.now, self.scan.sequence);
        let region = &mut self.scan.regions[index];
        if let Some(reason) = region.traits.obstacle(self.scanner.balances) {
            return Some(reason);
        }
        if !self.rules.track_regions {
            return None;
        }
        let memory = region.memory.get_or_insert_with(|| Memory::new(now, sequence, self.settings));
        if sequence != 0 && now < memory.not_before {
            return Some(SkipReason::ScanDelay);
        }
        if self.rules.window_before_test {
            memory.end_window(now, sequence, self.settings);
        }
        let done = self.rules.once_per_sequence && memory.completed == sequence;
        done.then_some(SkipReason::SeqCompleted)
    }

    /// Returns `true` if activity does not count yet.
    pub(super) fn is_blind(&self, index: usize) -> bool {
        if !self.rules.track_regions {
            return true;
        }
        let first = self.memory(index).map_or(0, |memory| memory.first);
        let since = if self.rules.per_region_cycles { first } else { 0 };
        self.scan.sequence - since < BLIND_SEQUENCES
    }

    /// Returns `true` if the scanning thread used the region recently.
    pub(super) fn is_used_by_scanner(&self, index: usize) -> bool {
        let (width, thread) = (self.rules.width, self.scanner.thread);
        self.memory(index).is_some_and(|memory| memory.activity.has(width, thread))
    }

    /// Returns `true` if the region was skipped for more sequences than there are threads, and the
    /// rules rescue it.
    pub(super) fn is_rescued(&self, index: usize) -> bool {
        let completed = self.memory(index).map_or(0, |memory| memory.completed);
        let starves = self.scan.sequence > completed + i64::from(self.scanner.threads);
        self.rules.scan_starved && starves
    }

    pub(super) fn memory(&self, index: usize) -> Option<&Memory> {
        self.scan.regions[index].memory.as_ref()
    }

    pub(super) fn note(&mut self, index: usize, reason: SkipReason) {
        self.effects.note(self.scan.regions[index].range.start, reason);
    }

    /// Arms a region piece by piece from `at`, and advances `at`.
    pub(super) fn arm_from(&mut self, index: usize, at: &mut u64) -> Scanned {
        let Range { start, end } = self.scan.regions[index].range;
        loop {
            let stop = (*at + self.arm as u64).next_multiple_of(HUGE_PAGE).min(end);
            let changed = self.effects.arm(start, *at..stop);
            let bytes = (stop - *at) as i64;
            *at = stop;
            // A piece that was armed before costs only the inspection.
            self.arm -= if changed > 0 { bytes } else { 0 };
            self.look -= bytes;
            if self.arm <= 0 || self.look <= 0 {
                return Scanned::BudgetSpent;
            }
            if *at >= end {
                break;
            }
        }
        let sequence = self.scan.sequence;
        if let Some(memory) = &mut self.scan.regions[index].memory {
            memory.completed = sequence;
        }
        Scanned::Completely
    }
}
