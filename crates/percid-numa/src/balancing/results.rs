//! The results of a balancer so far.

use std::sync::Arc;

use crate::access::region_record::RegionRecord;
use crate::balancing::describe;
use crate::balancing::shared::Inner;
use crate::lock::lock;
use crate::report::Report;
use crate::report::event::Event;
use crate::sys::process;
use crate::tiers::Placement;

impl Inner {
    /// Takes the events since the last call.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        lock(&self.state).log.take()
    }

    /// Records which stages of placing memory were reached.
    pub(super) fn note_progress(&self) {
        let mut state = lock(&self.state);
        let counts = state.counts();
        state.timeline.note(self.began.elapsed(), counts);
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
        let entries: Vec<Arc<RegionRecord>> = {
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
