//! What a balancer decided, one decision after the other.

use std::collections::VecDeque;
use std::ops::Range;

use percid_rules::scan::Reason;

/// How many events are kept for [`Balancer::take_events`](crate::Balancer::take_events).
const KEPT: usize = 4096;

/// A decision, or what became of one. A region is named by the address it starts at.
///
/// ```
/// use percid_numa::{Balancer, Event};
///
/// let balancer = Balancer::new();
/// balancer.pass();
/// for event in balancer.take_events() {
///     match event {
///         Event::Armed { region, pages, .. } => println!("{region:#x}: {pages} pages armed"),
///         other => println!("{other:?}"),
///     }
/// }
/// assert!(balancer.take_events().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A pass begins.
    Pass {
        /// The thread that it is made for.
        thread: u32,
        /// The sequence that it belongs to.
        sequence: i64,
    },
    /// A region was left out, or was not ([`Reason::IgnorePidInactive`]).
    Skipped {
        /// The region.
        region: usize,
        /// Why.
        reason: Reason,
    },
    /// A part of a region was armed.
    Armed {
        /// The region.
        region: usize,
        /// The part.
        part: Range<usize>,
        /// How many of its pages were not armed before.
        pages: u64,
    },
    /// Pages were moved.
    Moved {
        /// The region.
        region: usize,
        /// How many.
        pages: u64,
        /// How many could not be moved.
        failed: u64,
    },
    /// The memory of a region is not mapped any more, or something else is mapped there. From now
    /// on the region is left alone.
    Gone {
        /// The region.
        region: usize,
    },
    /// The mappings of the process could not be read: this pass armed nothing.
    Blind,
    /// Another SIGSEGV handler has taken the place of percid's: trapped regions are not armed.
    HandlerReplaced,
}

/// The events that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: VecDeque<Event>,
    lost: u64,
}

impl Log {
    /// Appends an event; the oldest is lost if there are too many.
    pub(crate) fn push(&mut self, event: Event) {
        if self.events.len() == KEPT {
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

    /// Returns how many were lost so far.
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
        (0..KEPT + 3).for_each(|region| log.push(Event::Gone { region }));
        let events = log.take();
        assert_eq!((events.len(), log.lost()), (KEPT, 3));
        assert_eq!(events[0], Event::Gone { region: 3 });
        assert_eq!(log.take(), []);
    }
}
