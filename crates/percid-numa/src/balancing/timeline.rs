//! The times at which the stages of placing memory were reached.

use std::collections::VecDeque;
use std::time::Duration;

use crate::report::placement_timeline::PlacementTimeline;

/// Maximum number of episodes that are kept.
const MAX_TIMELINES: usize = 16;

/// An episode ends this long after its last move: a later change begins another one.
const SETTLED: Duration = Duration::from_millis(500);

/// Counts of events so far, over all regions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventCounts {
    /// Pages that were armed.
    pub(crate) armed: u64,
    /// Accesses to armed grains.
    pub(crate) seen: u64,
    /// Grains with a pending move at this moment.
    pub(crate) pending: u64,
    /// Pages that were armed again because one more access had to decide.
    pub(crate) rearmed: u64,
}

/// The last episodes.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    episodes: VecDeque<PlacementTimeline>,
    /// The counts at the beginning of the last episode.
    before: EventCounts,
}

impl Timeline {
    /// Begins another episode, if the last one is over.
    pub(crate) fn begin(&mut self, now: Duration, counts: EventCounts) {
        let is_over =
            |last: &PlacementTimeline| last.moved.is_some_and(|moved| now >= moved + SETTLED);
        if self.episodes.back().is_none_or(is_over) {
            if self.episodes.len() == MAX_TIMELINES {
                self.episodes.pop_front();
            }
            self.episodes
                .push_back(PlacementTimeline { began: now, ..PlacementTimeline::default() });
            self.before = counts;
        }
    }

    /// Records the stages that the counts show as reached.
    pub(crate) fn note(&mut self, now: Duration, counts: EventCounts) {
        let (Some(last), before) = (self.episodes.back_mut(), &self.before) else { return };
        let reach = |place: &mut Option<Duration>, is_reached: bool| {
            *place = place.or(is_reached.then_some(now));
        };
        reach(&mut last.armed, counts.armed > before.armed);
        reach(&mut last.seen, counts.seen > before.seen);
        reach(&mut last.pending, counts.pending > 0);
        last.rearmed = counts.rearmed - before.rearmed;
    }

    /// Records that pages were moved.
    pub(crate) fn moved(&mut self, now: Duration, pages: u64) {
        if let Some(last) = self.episodes.back_mut().filter(|_| pages > 0) {
            last.pending = last.pending.or(Some(now));
            last.moved = Some(now);
            last.pages += pages;
            last.batches += 1;
        }
    }

    pub(crate) fn episodes(&self) -> Vec<PlacementTimeline> {
        self.episodes.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_stages_are_noted_when_they_are_reached_first() {
        let mut timeline = Timeline::default();
        timeline.note(ms(1), EventCounts { armed: 9, ..EventCounts::default() });
        let mut counts = EventCounts { armed: 7, ..EventCounts::default() };
        timeline.begin(ms(10), counts);
        timeline.note(ms(20), counts);
        counts.armed = 9;
        timeline.note(ms(30), counts);
        counts.seen = 3;
        timeline.note(ms(40), counts);
        counts.rearmed = 2;
        timeline.note(ms(50), counts);
        counts.pending = 1;
        timeline.note(ms(60), counts);
        timeline.moved(ms(70), 5);
        timeline.moved(ms(80), 6);
        timeline.moved(ms(90), 0);
        let expected = PlacementTimeline {
            began: ms(10),
            armed: Some(ms(30)),
            seen: Some(ms(40)),
            pending: Some(ms(60)),
            moved: Some(ms(80)),
            pages: 11,
            batches: 2,
            rearmed: 2,
        };
        assert_eq!(timeline.episodes(), [expected]);
    }

    #[test]
    fn an_episode_is_over_when_nothing_has_moved_for_a_while() {
        let mut timeline = Timeline::default();
        timeline.begin(ms(0), EventCounts::default());
        timeline.begin(ms(900), EventCounts::default());
        timeline.moved(ms(1000), 1);
        timeline.begin(ms(1400), EventCounts::default());
        assert_eq!(timeline.episodes().len(), 1);
        timeline.begin(ms(1500), EventCounts::default());
        assert_eq!(
            timeline.episodes()[1],
            PlacementTimeline { began: ms(1500), ..PlacementTimeline::default() }
        );
        for turn in 0..40 {
            timeline.moved(ms(2000 + turn * 1000), 1);
            timeline.begin(ms(2600 + turn * 1000), EventCounts::default());
        }
        assert_eq!(timeline.episodes().len(), MAX_TIMELINES);
    }
}
