//! The consumer of a ring, shard by shard and record by record.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use super::object::{Overflow, Ring};
use super::shard::{Reading, bytes_of};
use super::turn::TurnGuard;
use crate::arena::Block;
use crate::handle::State;
use crate::id::Source;
use crate::sys::race_detector;

impl Ring {
    /// Returns the consumer; `None` if there is one already. When it is dropped another one can be
    /// made, which continues where it stopped.
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// let ring = Ring::new(4096, Overflow::DropNewest);
    /// let consumer = ring.consumer().expect("no other consumer");
    /// assert!(ring.consumer().is_none());
    /// drop(consumer);
    /// assert!(ring.consumer().is_some());
    /// ```
    #[must_use]
    pub fn consumer(&self) -> Option<Consumer<'_>> {
        let turn = self.consumption.turn.take()?;
        Some(Consumer { ring: self, record: Vec::new(), _turn: turn })
    }
}

/// The consumer of a ring.
///
/// ```
/// use percid::{Overflow, Ring};
///
/// let ring = Ring::new(4096, Overflow::DropNewest);
/// ring.append(b"record")?;
/// let mut consumer = ring.consumer().expect("no other consumer");
/// assert_eq!(consumer.poll(|_| ()), 1);
/// # Ok::<(), percid::ring::AppendError>(())
/// ```
#[must_use = "the ring has no consumer again at once"]
pub struct Consumer<'r> {
    ring: &'r Ring,
    /// The record that is being delivered.
    pub(super) record: Vec<u64>,
    pub(super) _turn: TurnGuard<'r>,
}

impl fmt::Debug for Consumer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("ring", self.ring).finish_non_exhaustive()
    }
}

/// A record that is delivered to the consumer.
///
/// ```
/// use percid::{Overflow, Ring};
///
/// let ring = Ring::new(4096, Overflow::DropNewest);
/// ring.append(b"record")?;
/// let mut consumer = ring.consumer().expect("no other consumer");
/// consumer.poll(|event| assert_eq!((event.number, event.bytes), (0, &b"record"[..])));
/// # Ok::<(), percid::ring::AppendError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Event<'e> {
    /// The ID of the ring that contained it; `None` if it was appended without one.
    pub id: Option<u32>,
    /// Its number among the records of this ID: gaps are lost records.
    pub number: u64,
    /// The bytes that were appended.
    pub bytes: &'e [u8],
}

impl Consumer<'_> {
    /// Passes all current records to `f`, ID by ID, and returns their number.
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// let ring = Ring::new(4096, Overflow::DropNewest);
    /// ring.append(b"one")?;
    /// ring.append(b"two")?;
    /// let mut consumer = ring.consumer().expect("no other consumer");
    /// let mut bytes = 0;
    /// assert_eq!(consumer.poll(|event| bytes += event.bytes.len()), 2);
    /// assert_eq!(bytes, 6);
    /// # Ok::<(), percid::ring::AppendError>(())
    /// ```
    pub fn poll(&mut self, mut f: impl FnMut(Event<'_>)) -> usize {
        let mut poll = self.begin_poll();
        let mut count = 0;
        while let Some(event) = self.next_of(&mut poll) {
            count += 1;
            f(event);
        }
        count
    }

    /// Begins a poll that returns one record after the other.
    pub(super) fn begin_poll(&self) -> Poll {
        match self.ring.handle.state() {
            State::Claimed(block, source) => {
                // The shared shard comes first, then those of the IDs.
                let end = 1 + source.map_or(0, Source::id_count);
                Poll { block, next: 0, end, reading: None }
            }
            _ => Poll { block: Block(0), next: 0, end: 0, reading: None },
        }
    }

    /// Returns the next record of a poll that this consumer has begun.
    pub(super) fn next_of(&mut self, poll: &mut Poll) -> Option<Event<'_>> {
        loop {
            if let Some((id, reading)) = &mut poll.reading {
                if let Some(record) = reading.next(&mut self.record) {
                    if record.skipped != 0 {
                        self.ring.consumption.overwritten.fetch_add(record.skipped, Relaxed);
                    }
                    let (id, number, length) = (*id, record.number, record.bytes.len());
                    return Some(Event { id, number, bytes: bytes_of(&self.record, length) });
                }
            }
            if let Some((_, reading)) = poll.reading.take() {
                reading.finish();
            }
            poll.reading = Some(self.start_next(poll)?);
        }
    }

    /// Starts the next shard of a poll, and returns its ID and the reading.
    fn start_next(&self, poll: &mut Poll) -> Option<(Option<u32>, Reading)> {
        let index = (poll.next < poll.end).then_some(poll.next)?;
        poll.next += 1;
        let id = index.checked_sub(1);
        let address = id.map_or(poll.block.0, |id| poll.block.of_id(id));
        let keeps_oldest = self.ring.overflow == Overflow::DropNewest;
        let reading = Reading::start(self.ring.shard_at(address), keeps_oldest);
        race_detector::acquire(std::ptr::from_ref(self.ring).addr());
        Some((id, reading))
    }
}

/// A poll, record by record.
#[doc(hidden)]
#[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
#[derive(Debug)]
pub struct Poll {
    block: Block,
    /// The next shard: 0 is the shared one.
    next: u32,
    end: u32,
    /// The shard that is being read, and its ID.
    pub(super) reading: Option<(Option<u32>, Reading)>,
}
