//! Demotion of cold memory, if no other move is pending.

use std::sync::Arc;
use std::time::Instant;

use crate::access::region_record::RegionRecord;
use crate::balancing::shared::Inner;
use crate::balancing::state::BalancerState;
use crate::done::Batch;
use crate::kernel::Linux;
use crate::lock::lock;
use crate::migrate;
use crate::report::event::Event;
use crate::tiers;

impl Inner {
    /// Moves a batch of cold memory to slow nodes, if any is left since the last pass.
    pub(super) fn demote_batch(&self) -> Batch {
        let began = Instant::now();
        let Some(tiers) = &self.tiers else { return Batch::default() };
        let (entry, mut size) = {
            let state = lock(&self.state);
            let Some(entry) = searched(&state) else { return Batch::default() };
            (entry, state.batch_size)
        };
        let (mut batch, is_limited) =
            migrate::demote_some(&Linux, &entry, &self.settings, tiers, &mut size);
        let mut state = lock(&self.state);
        state.batch_size = size;
        state.move_time += began.elapsed();
        let (region, Batch { moved: pages, failed, .. }) = (entry.range.start, batch);
        if pages + failed > 0 {
            state.log.push(Event::Moved { region, pages, failed });
        }
        // The moves that are limited for this second are made when a batch is requested later.
        batch.more = !is_limited && searched(&state).is_some();
        batch
    }
}

/// Returns a region in which the search for cold grains is not complete.
fn searched(state: &BalancerState) -> Option<Arc<RegionRecord>> {
    state.entries.values().find(|entry| tiers::is_searched(entry)).cloned()
}
