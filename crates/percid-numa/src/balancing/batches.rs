//! Batches of pages with a pending move.

use std::sync::Arc;
use std::time::Instant;

use crate::access::region_record::RegionRecord;
use crate::balancing::shared::Inner;
use crate::done::Batch;
use crate::kernel::Linux;
use crate::lock::lock;
use crate::migrate;
use crate::report::event::Event;
use crate::tiers;

impl Inner {
    /// Returns the number of bytes that a batch moves at present.
    pub(super) fn batch_bytes(&self) -> u64 {
        migrate::bytes(&self.settings, &lock(&self.state).batch_size)
    }

    /// Returns the number of bytes with a pending move.
    pub(super) fn pending_bytes(&self) -> u64 {
        let state = lock(&self.state);
        let of =
            |entry: &Arc<RegionRecord>| entry.pages.as_ref().map_or(0, |pages| pages.layout.shift);
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
}
