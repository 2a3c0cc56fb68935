//! What happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::index::ThreadIndex;
use crate::time::Ns;
use crate::topology::Cpu;

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// What a CPU does ends, or its timer ticks.
    Cpu(Cpu),
    /// A thread wakes.
    Wake(ThreadIndex),
    /// The affinity of all threads changes: which change of the program's.
    Affinity(u32),
    /// A group of threads of a process begins: the process times the number of groups, plus the
    /// group.
    Begin(u32),
}

/// Names one event that was put into the queue; numbers grow.
pub(super) type Ticket = u64;

/// Events in the order of their times. Those of one time are in the order in which they were put
/// in, so that the order is the same everywhere.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Time, ticket and event in one number, in this order of weight.
    heap: BinaryHeap<Reverse<u128>>,
    /// Whether the first one has been taken out already. It stays until another one takes its
    /// place, because most events put in another one, and replacing the first costs half of taking
    /// out and putting in.
    first_is_taken: bool,
    next: Ticket,
}

const KIND_BITS: u32 = 2;
const WHO_BITS: u32 = 24;
const TICKET_BITS: u32 = 64 - KIND_BITS - WHO_BITS;

/// The largest number of a CPU, a thread, a change of affinity or a group that fits into an event.
pub(super) const MAX_WHO: u32 = (1 << WHO_BITS) - 1;

impl Queue {
    /// Puts an event in. Tickets last for 2^38 events, which take hours to simulate.
    pub(super) fn put(&mut self, at: Ns, event: Event) -> Ticket {
        let (kind, who) = match event {
            Event::Cpu(cpu) => (0, cpu),
            Event::Wake(thread) => (1, thread.number()),
            Event::Affinity(change) => (2, change),
            Event::Begin(group) => (3, group),
        };
        debug_assert!(who <= MAX_WHO && self.next < 1 << TICKET_BITS);
        let ticket = self.next;
        self.next += 1;
        let low = ticket << (KIND_BITS + WHO_BITS) | u64::from(who) << KIND_BITS | kind;
        let packed = Reverse(u128::from(at) << 64 | u128::from(low));
        if std::mem::take(&mut self.first_is_taken) {
            if let Some(mut first) = self.heap.peek_mut() {
                *first = packed;
            }
        } else {
            self.heap.push(packed);
        }
        ticket
    }

    /// Takes the next event out.
    pub(super) fn take(&mut self) -> Option<(Ns, Ticket, Event)> {
        if std::mem::take(&mut self.first_is_taken) {
            self.heap.peek_mut().map(PeekMut::pop);
        }
        let Reverse(packed) = *self.heap.peek()?;
        self.first_is_taken = true;
        let low = packed as u64;
        let who = (low >> KIND_BITS) as u32 & MAX_WHO;
        let event = match low & ((1 << KIND_BITS) - 1) {
            0 => Event::Cpu(who),
            1 => Event::Wake(ThreadIndex::new(who)),
            2 => Event::Affinity(who),
            _ => Event::Begin(who),
        };
        Some(((packed >> 64) as Ns, low >> (KIND_BITS + WHO_BITS), event))
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
        let order: Vec<(Ns, Event)> =
            std::iter::from_fn(|| queue.take()).map(|(at, _, event)| (at, event)).collect();
        assert_eq!(
            order,
            [
                (3, Event::Cpu(7)),
                (5, Event::Wake(ThreadIndex::new(MAX_WHO))),
                (5, Event::Affinity(1)),
                (5, Event::Begin(4))
            ]
        );
    }
}
