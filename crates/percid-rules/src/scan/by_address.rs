//! A pass in the order of the addresses ([`Order::Address`](super::Order::Address)), as in Linux.

use super::region::SkipReason;
use super::visit::{Effects, Pass, Scanned};

/// The end of a walk along the regions.
enum Walked {
    /// Inside or behind a region: the next pass continues there.
    Stopped(u64),
    /// Behind the last region.
    Through {
        /// `true` if some regions were skipped because the scanning thread does not use them.
        inactive: bool,
    },
}

/// Visits the regions from the address at which the previous pass ended.
pub(super) fn run<E: Effects>(pass: &mut Pass<'_, E>) {
    let mut walked = pass.walk(false);
    if matches!(walked, Walked::Through { inactive: true }) && pass.rules.scan_one_inactive {
        walked = pass.walk(true);
    }
    match walked {
        Walked::Stopped(address) => pass.scan.offset = address,
        Walked::Through { .. } => pass.scan.next_sequence(),
    }
}

impl<E: Effects> Pass<'_, E> {
    /// Walks on from the offset. A forced walk scans one region whether it is used or not, and
    /// stops behind it.
    fn walk(&mut self, forced: bool) -> Walked {
        let mut index = self.scan.first_above(self.scan.offset);
        if index == self.scan.regions.len() {
            self.scan.next_sequence();
            index = 0;
        }
        let (mut at, mut inactive) = (self.scan.offset, false);
        while index < self.scan.regions.len() {
            match self.question(index, forced) {
                Some(reason) => inactive |= reason == SkipReason::PidInactive,
                None => {
                    at = at.max(self.scan.regions[index].range.start);
                    let scanned = self.arm_from(index, &mut at);
                    if forced || scanned == Scanned::BudgetSpent {
                        return Walked::Stopped(at);
                    }
                }
            }
            index += 1;
        }
        Walked::Through { inactive }
    }

    /// Returns the reason to skip a region, if any, and reports it.
    fn question(&mut self, index: usize, forced: bool) -> Option<SkipReason> {
        let reason = self.obstacle(index).or_else(|| self.inactivity(index, forced));
        if let Some(reason) = reason {
            self.note(index, reason);
        }
        if reason == Some(SkipReason::SeqCompleted) {
            self.scan.offset = self.scan.regions[index].range.end;
        }
        reason
    }

    /// Returns [`SkipReason::PidInactive`] if the scanning thread does not use the region and that
    /// counts.
    fn inactivity(&mut self, index: usize, forced: bool) -> Option<SkipReason> {
        if !forced && !self.counts_as_user(index) {
            return Some(SkipReason::PidInactive);
        }
        // Before the fixes a window ended only for regions that reach this line.
        if !self.rules.window_before_test {
            let sequence = self.scan.sequence;
            if let Some(memory) = &mut self.scan.regions[index].memory {
                memory.end_window(self.now, sequence, self.settings);
            }
        }
        None
    }

    fn counts_as_user(&mut self, index: usize) -> bool {
        if self.is_blind(index) || self.is_used_by_scanner(index) {
            return true;
        }
        let begun = self.scan.offset > self.scan.regions[index].range.start;
        if begun && self.rules.complete_partial {
            self.note(index, SkipReason::IgnorePidInactive);
            return true;
        }
        self.is_rescued(index)
    }
}
