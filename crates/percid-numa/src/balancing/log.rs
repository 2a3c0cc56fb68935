//! The events that were not taken yet.

use std::collections::VecDeque;

use crate::report::event::Event;

/// Number of events that are kept for [`Balancer::take_events`](crate::Balancer::take_events).
const MAX_EVENTS: usize = 4096;

/// The events that were not taken yet, and the number of lost ones.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: VecDeque<Event>,
    lost: u64,
}

impl Log {
    /// Appends an event; the oldest is lost if there are too many.
    pub(crate) fn push(&mut self, event: Event) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back(event);
    }

    /// Appends the events of another log.
    pub(crate) fn append(&mut self, other: Log) {
        self.lost += other.lost;
        other.events.into_iter().for_each(|event| self.push(event));
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }

    /// Returns the number of events that were lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_are_lost_and_counted() {
        let mut log = Log::default();
        (0..MAX_EVENTS + 3).for_each(|region| log.push(Event::Gone { region }));
        let events = log.take();
        assert_eq!((events.len(), log.lost()), (MAX_EVENTS, 3));
        assert_eq!(events[0], Event::Gone { region: 3 });
        assert_eq!(log.take(), []);
    }
}
