//! The queue of future events.

use super::index::ThreadIndex;
use super::quota::BandwidthIndex;
use super::wheel::{Wheel, WheelEntry};
use crate::time::Ns;
use crate::topology::Cpu;

/// An event that happens at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The operation of a CPU's thread ends, or the CPU's timer ticks.
    Cpu(Cpu),
    /// A thread wakes.
    Wake(ThreadIndex),
    /// The affinity of all threads changes; the value is the index of the program's change.
    Affinity(u32),
    /// A group of threads of a process begins; the value is the process times the number of groups,
    /// plus the group.
    Begin(u32),
    /// A period of a CPU quota ends.
    Period(BandwidthIndex),
    /// Throttled CPUs get the quota that other CPUs gave back.
    Slack(BandwidthIndex),
}

/// Identifies an event in the queue; tickets ascend.
pub(super) type Ticket = u64;

/// Events in the order of their times. Events at the same time keep the order of insertion, so that
/// the order is the same on every machine.
#[derive(Debug, Default)]
pub(super) struct Queue {
    wheel: Wheel,
    next: Ticket,
}

const KIND_BITS: u32 = 3;
const WHO_BITS: u32 = 24;
const TICKET_BITS: u32 = 64 - KIND_BITS - WHO_BITS;

/// The largest index of a CPU, a thread, a change of affinity or a group that fits into an event.
pub(super) const MAX_WHO: u32 = (1 << WHO_BITS) - 1;

impl Queue {
    /// Inserts an event. Tickets last for 2^37 events, which take hours to simulate.
    #[inline]
    pub(super) fn put(&mut self, at: Ns, event: Event) -> Ticket {
        let (kind, who) = match event {
            Event::Cpu(cpu) => (0, cpu),
            Event::Wake(thread) => (1, thread.number()),
            Event::Affinity(change) => (2, change),
            Event::Begin(group) => (3, group),
            Event::Period(bandwidth) => (4, bandwidth),
            Event::Slack(bandwidth) => (5, bandwidth),
        };
        debug_assert!(who <= MAX_WHO && self.next < 1 << TICKET_BITS);
        let ticket = self.next;
        self.next += 1;
        let what = ticket << (KIND_BITS + WHO_BITS) | u64::from(who) << KIND_BITS | kind;
        self.wheel.put(WheelEntry { at, what });
        ticket
    }

    /// Removes and returns the next event.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(Ns, Ticket, Event)> {
        let WheelEntry { at, what } = self.wheel.take()?;
        let who = (what >> KIND_BITS) as u32 & MAX_WHO;
        let event = match what & ((1 << KIND_BITS) - 1) {
            0 => Event::Cpu(who),
            1 => Event::Wake(ThreadIndex::new(who)),
            2 => Event::Affinity(who),
            3 => Event::Begin(who),
            4 => Event::Period(who),
            _ => Event::Slack(who),
        };
        Some((at, what >> (KIND_BITS + WHO_BITS), event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_went_in() {
        let mut queue = Queue::default();
        queue.put(5, Event::Wake(ThreadIndex::new(MAX_WHO)));
        queue.put(3, Event::Cpu(7));
        queue.put(5, Event::Affinity(1));
        queue.put(5, Event::Begin(4));
        queue.put(6, Event::Slack(MAX_WHO));
        queue.put(5, Event::Period(0));
        let order: Vec<(Ns, Event)> =
            std::iter::from_fn(|| queue.take()).map(|(at, _, event)| (at, event)).collect();
        assert_eq!(
            order,
            [
                (3, Event::Cpu(7)),
                (5, Event::Wake(ThreadIndex::new(MAX_WHO))),
                (5, Event::Affinity(1)),
                (5, Event::Begin(4)),
                (5, Event::Period(0)),
                (6, Event::Slack(MAX_WHO)),
            ]
        );
    }
}
