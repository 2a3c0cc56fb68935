//! Rings: per-ID buffers of records for one consumer.
//!
//! # A shard's memory
//!
//! A shard has three cache lines, then the data. *Head* is the position behind the newest record,
//! *tail* the position of the oldest one. Positions are numbers of bytes that only grow; the offset
//! in the data is the position modulo its size. A record is a header word and its bytes, padded to
//! words. The header contains the record's length and its number among all records of this shard.
//! The previous record writes that number, so the word at the head always contains the number of
//! the next record. Zeroed memory is an empty ring.
//!
//! # Writers
//!
//! The section `append` writes into the free part, between head and tail, and commits the head. If
//! there is no room, the record is lost ([`Overflow::DropNewest`]), or the section `discard` moves
//! the tail over enough of the oldest records ([`Overflow::OverwriteOldest`]). It discards at least
//! an eighth of the ring, so that it is not needed for every record. A thread without an ID uses
//! the shared shard, under a lock that it only tries to take.
//!
//! # The consumer
//!
//! *Drop newest*: the consumer reads from the tail to the head and then moves the tail, so writers
//! never touch what it reads. *Overwrite oldest*: the tail belongs to the writers, and the consumer
//! has a position of its own. It copies a record and then checks whether the tail has passed the
//! record's position. If it has, the copy may be torn and is discarded: writers move the tail
//! before they write into the freed part, so a consumer that sees any of the new bytes sees the new
//! tail. Either way a gap in the numbers is the number of overwritten records.

mod shard;
mod turn;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::arena::{self, Block};
use crate::counter::Counter;
use crate::critical::by_mark;
use crate::critical::ring::{self as layout, Append, DATA};
use crate::handle::{self, Handle, Needs, State};
use crate::id::{Source, SourceError};
use crate::retry::retry;
use crate::sys::{preserving_errno, race_detector};
use shard::{Reading, Shard, bytes_of};
use turn::{Turn, TurnGuard};

/// The treatment of a record when a ring is full.
///
/// ```
/// use percid::{Overflow, Ring};
///
/// // A log of what happened first, and one of what happened last.
/// static FIRST: Ring = Ring::new(64 * 1024, Overflow::DropNewest);
/// static LAST: Ring = Ring::new(64 * 1024, Overflow::OverwriteOldest);
/// ```
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The new record is lost.
    DropNewest = 1,
    /// The oldest records are lost: an eighth of the ring at a time.
    OverwriteOldest = 2,
}

/// The reason why a record was not appended. Such records are counted by [`Ring::lost`].
///
/// ```
/// use percid::{Overflow, Ring, ring::AppendError};
///
/// let ring = Ring::new(1024, Overflow::DropNewest);
/// assert_eq!(ring.append(&[0; 1000]), Err(AppendError::TooLong));
/// assert_eq!(ring.lost(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AppendError {
    /// It is longer than [`Ring::max_record_len`].
    TooLong,
    /// The ring is full, and keeps the oldest records ([`Overflow::DropNewest`]).
    Full,
    /// The thread currently has no ID, and another thread is using the shared shard.
    Busy,
    /// The ring has no memory.
    NoMemory,
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AppendError::TooLong => "the record is longer than the ring takes",
            AppendError::Full => "the ring is full",
            AppendError::Busy => "the thread has no ID, and the shared shard is in use",
            AppendError::NoMemory => "no memory for the ring",
        })
    }
}

impl std::error::Error for AppendError {}

/// A ring of byte records for every CPU, with one consumer.
///
/// ```
/// use percid::{Overflow, Ring};
///
/// static EVENTS: Ring = Ring::new(64 * 1024, Overflow::OverwriteOldest);
///
/// EVENTS.append(b"request 17 began")?;
/// EVENTS.append(b"request 17 ended")?;
///
/// let mut consumer = EVENTS.consumer().expect("no other consumer");
/// let mut records = Vec::new();
/// consumer.poll(|event| records.push(event.bytes.to_vec()));
/// assert_eq!(records.len(), 2);
/// assert_eq!(EVENTS.lost(), 0);
/// # Ok::<(), percid::ring::AppendError>(())
/// ```
///
/// # Contract
///
/// * **Threads**: any number of threads may append at once. There is one [`Consumer`] at a time.
/// * **Order**: records of one ID are delivered in the order in which they were appended, across
///   all polls. Between IDs there is no order, and a thread that moves to another CPU appends to
///   another ID's ring: put a time into the record if order matters.
/// * **Loss**: a record is delivered once or counted as lost once. With
///   [`Overflow::OverwriteOldest`] the loss is counted when the consumer reaches the gap.
/// * **A poll may miss** records that are appended while it runs. It delivers every record whose
///   append *happens before* it, and ends even if writers are faster than it.
/// * **Signals**: [`append`](Ring::append) is async-signal-safe, also in a handler that interrupts
///   it, does not wait, and preserves `errno`.
/// * **Fork**: the child has a copy of the records that were not consumed yet, and may make a
///   consumer even if the parent had one. If the child continues with the parent's consumer, it
///   must not make another. A shard without sections in which another thread of the parent was
///   appending stays taken: records that are appended there are lost, and counted.
/// * **Memory**: 128 bytes for the handle; for every ID that used it 192 bytes and as much of the
///   ring as was ever written, page by page; address space is rounded up to a power of two.
/// * **Cost**: a record about 60 instructions and 9 for each word, none locked. With
///   [`Source::Atomic`] and in the shared shard two locked instructions. If a record finds the ring
///   full and overwrites, it also skips an eighth of the ring.
#[repr(C, align(64))]
pub struct Ring {
    handle: Handle,
    capacity: u64,
    overflow: Overflow,
    /// Records that were not appended.
    dropped: Counter,
    consumption: Consumption,
}

/// Offsets and sizes that C programs contain as numbers: they define rings in static storage, and
/// append inline.
#[cfg(all(feature = "capi", target_pointer_width = "64"))]
const _: () = {
    use std::mem::offset_of;

    assert!(size_of::<Ring>() == 128);
    assert!(offset_of!(Ring, handle) == 0 && offset_of!(Ring, capacity) == 8);
    assert!(offset_of!(Ring, overflow) == 16);
};

/// The result of an append.
type Appended = Result<(), AppendError>;

/// The fields that consumers write, on a different cache line than those that every append reads.
#[repr(C, align(64))]
struct Consumption {
    /// Records that were found overwritten.
    overwritten: AtomicU64,
    turn: Turn,
}

impl Ring {
    /// The minimum size of a ring in bytes.
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// let smallest = Ring::new(Ring::MIN_BYTES, Overflow::DropNewest);
    /// assert_eq!(smallest.max_record_len(), 16);
    /// ```
    pub const MIN_BYTES: usize = 128;
    /// The maximum size of a ring in bytes.
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// let largest = Ring::new(Ring::MAX_BYTES, Overflow::DropNewest);
    /// assert_eq!(largest.max_record_len(), 65_535);
    /// ```
    pub const MAX_BYTES: usize = arena::STRIDE / 2;

    /// Creates an empty ring of `bytes` bytes for every ID. It will use the source of the process
    /// (see [`init`](crate::init)).
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// static EVENTS: Ring = Ring::new(64 * 1024, Overflow::OverwriteOldest);
    /// EVENTS.append(b"started")?;
    /// # Ok::<(), percid::ring::AppendError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the size is not a power of two, below [`MIN_BYTES`](Ring::MIN_BYTES) or above
    /// [`MAX_BYTES`](Ring::MAX_BYTES) (8 MiB; 512 KiB on 32 bits).
    pub const fn new(bytes: usize, overflow: Overflow) -> Ring {
        assert!(
            bytes.is_power_of_two() && bytes >= Ring::MIN_BYTES && bytes <= Ring::MAX_BYTES,
            "a ring's size is a power of two from 128 bytes to 8 MiB"
        );
        Ring {
            handle: Handle::new(),
            capacity: bytes as u64,
            overflow,
            dropped: Counter::new(),
            consumption: Consumption {
                overwritten: AtomicU64::new(0),
                turn: Turn { taken: AtomicU64::new(0) },
            },
        }
    }

    /// Creates a ring like [`new`](Ring::new) that uses `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid::{Overflow, Ring, Source};
    ///
    /// let ring = Ring::with_source(Source::Atomic, 4096, Overflow::DropNewest)?;
    /// assert!(ring.append(b"started").is_ok());
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    ///
    /// # Panics
    ///
    /// The same as for [`new`](Ring::new).
    pub fn with_source(
        source: Source,
        bytes: usize,
        overflow: Overflow,
    ) -> Result<Ring, SourceError> {
        let mut ring = Ring::new(bytes, overflow);
        ring.handle = Handle::with_source(source, Needs::Handover, ring.bytes())?;
        Ok(ring)
    }

    /// Returns the maximum length of a record in bytes: a quarter of the ring less 16, and at most
    /// 65 535.
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// assert_eq!(Ring::new(1024, Overflow::DropNewest).max_record_len(), 240);
    /// ```
    pub const fn max_record_len(&self) -> usize {
        layout::max_record_len(self.capacity) as usize
    }

    /// Appends a record.
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// let ring = Ring::new(4096, Overflow::OverwriteOldest);
    /// ring.append(&17u64.to_ne_bytes())?;
    /// let _ = ring.append(b"not so important"); // counted if it is lost
    /// # Ok::<(), percid::ring::AppendError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the record is lost. It is counted as lost, so programs may ignore the error.
    #[inline(always)]
    pub fn append(&self, record: &[u8]) -> Result<(), AppendError> {
        let word = self.handle.word();
        let Some(request) = Append::new(record, self.capacity) else {
            return self.lose(AppendError::TooLong);
        };
        // SAFETY: the word of this ring's handle; the request is for this ring.
        if unsafe { by_mark!(word, append(&request), else false) } {
            return Ok(());
        }
        self.append_slowly(&request)
    }

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
    pub fn consumer(&self) -> Option<Consumer<'_>> {
        let turn = self.consumption.turn.take()?;
        Some(Consumer { ring: self, record: Vec::new(), _turn: turn })
    }

    /// Returns the number of records lost so far: not appended, or found overwritten by the
    /// consumer.
    ///
    /// ```
    /// use percid::{Overflow, Ring};
    ///
    /// let ring = Ring::new(128, Overflow::DropNewest);
    /// let kept = (0..100).filter(|_| ring.append(b"record").is_ok()).count();
    /// assert_eq!(kept as u64 + ring.lost(), 100);
    /// ```
    pub fn lost(&self) -> u64 {
        self.dropped.sum() as u64 + self.consumption.overwritten.load(Relaxed)
    }

    fn bytes(&self) -> usize {
        DATA + self.capacity as usize
    }

    fn shard_at(&self, address: usize) -> Shard {
        Shard { address, capacity: self.capacity }
    }

    /// Counts a lost record.
    #[cold]
    #[inline(never)]
    fn lose(&self, why: AppendError) -> Appended {
        self.dropped.increment();
        Err(why)
    }

    #[cold]
    #[inline(never)]
    fn append_slowly(&self, request: &Append) -> Appended {
        self.try_slowly(request).or_else(|why| self.lose(why))
    }

    fn try_slowly(&self, request: &Append) -> Appended {
        race_detector::release(std::ptr::from_ref(self).addr());
        let atomic = self.handle.atomic_block();
        if let Some(appended) = atomic.and_then(|block| self.append_at_hint(block, request)) {
            return appended;
        }
        preserving_errno(|| {
            let State::Claimed(block, source) = self.handle.settle(Needs::Handover, self.bytes())
            else {
                return Err(AppendError::NoMemory);
            };
            let appended = match source {
                None => None,
                Some(Source::Atomic) => self.append_at_hint(block, request),
                Some(source) => self.append_as(block, source, request),
            };
            appended
                .or_else(|| self.append_locked(self.shard_at(block.0), request))
                .unwrap_or(Err(AppendError::Busy))
        })
    }

    /// Appends through a source that has sections; `None` if the thread currently has no ID.
    fn append_as(&self, block: Block, source: Source, request: &Append) -> Option<Appended> {
        let word = handle::marked(block, source);
        let make_room = || {
            let shard = self.shard_at(block.of_id(source.ensure_id_hint()?));
            if !shard.has_room(request) {
                if self.overflow == Overflow::DropNewest {
                    return Some(ControlFlow::Break(Err(AppendError::Full)));
                }
                // The section that writes into the freed part orders itself after the discard.
                discard(word, shard.worth_keeping(request), request.mask);
            }
            Some(ControlFlow::Continue(()))
        };
        retry(|| try_append(word, request).then_some(Ok(())), make_room)
    }

    fn append_at_hint(&self, block: Block, request: &Append) -> Option<Appended> {
        let id = Source::Atomic.ensure_id_hint()?;
        self.append_locked(self.shard_at(block.of_id(id)), request)
    }

    /// Appends to a shard on which no section works; `None` if another thread is using it.
    fn append_locked(&self, shard: Shard, request: &Append) -> Option<Appended> {
        let overwrite = self.overflow == Overflow::OverwriteOldest;
        let appended = shard.append_locked(request, overwrite)?;
        Some(if appended { Ok(()) } else { Err(AppendError::Full) })
    }
}

#[cfg(feature = "testing")]
impl Ring {
    /// Appends to the shard of an ID, which belongs to the caller alone.
    pub(crate) fn append_to_id(&self, id: u32, record: &[u8]) -> bool {
        let request = Append::new(record, self.capacity);
        let appended = self.shard_of_id(id).zip(request);
        appended.and_then(|(shard, request)| self.append_locked(shard, &request)) == Some(Ok(()))
    }

    /// Returns the position of an ID's oldest record, and the position behind its newest.
    pub(crate) fn ends_of_id(&self, id: u32) -> Option<(u64, u64)> {
        self.shard_of_id(id).map(|shard| shard.ends())
    }

    fn shard_of_id(&self, id: u32) -> Option<Shard> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                Some(self.shard_at(block.of_id(id)))
            }
            _ => None,
        }
    }
}

/// Tries the section `append` once. Out of line, so that an unrolled loop does not repeat the
/// sections.
#[inline(never)]
fn try_append(word: usize, request: &Append) -> bool {
    // SAFETY: the block of a ring that was claimed for the source whose mark the word has; the
    // request is for this ring.
    unsafe { by_mark!(word, append(request), else false) }
}

/// Runs the section `discard` once, out of line like [`try_append`].
#[inline(never)]
fn discard(word: usize, keep: u64, mask: u64) {
    // SAFETY: the block of a ring that was claimed for the source whose mark the word has; `mask`
    // is the ring's capacity less one.
    unsafe { by_mark!(word, discard(keep, mask), else false) };
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
pub struct Consumer<'r> {
    ring: &'r Ring,
    /// The record that is being delivered.
    record: Vec<u64>,
    _turn: TurnGuard<'r>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        let mut poll = self.begin();
        let mut count = 0;
        while let Some(event) = self.next(&mut poll) {
            count += 1;
            f(event);
        }
        count
    }

    /// Begins a poll that returns one record after the other: for C functions, which may end the
    /// thread or jump, and must not do so across percid's frames.
    #[doc(hidden)]
    pub fn begin(&self) -> Poll {
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
    #[doc(hidden)]
    pub fn next(&mut self, poll: &mut Poll) -> Option<Event<'_>> {
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

    /// Ends a poll early, so that writers can use the room of the records that were read.
    #[doc(hidden)]
    pub fn end(&mut self, poll: Poll) {
        if let Some((_, reading)) = poll.reading {
            reading.finish();
        }
    }

    /// Ends a consumer whose ring is gone, without touching the ring: for C, which determines when
    /// that is the case.
    #[doc(hidden)]
    pub fn abandon(self) {
        let Consumer { record, _turn: turn, .. } = self;
        std::mem::forget(turn);
        drop(record);
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
#[derive(Debug)]
pub struct Poll {
    block: Block,
    /// The next shard: 0 is the shared one.
    next: u32,
    end: u32,
    /// The shard that is being read, and its ID.
    reading: Option<(Option<u32>, Reading)>,
}

impl fmt::Debug for Consumer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("ring", self.ring).finish_non_exhaustive()
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("bytes", &self.capacity)
            .field("overflow", &self.overflow)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let bytes = self.bytes();
        // SAFETY: `&mut self` proves that no operation on this ring is running or will run.
        unsafe { self.handle.release(bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn rings(bytes: usize, overflow: Overflow) -> impl Iterator<Item = (Source, Ring)> {
        let sources = Source::ALL.into_iter().filter(|source| source.prepare().is_ok());
        sources.map(move |source| {
            (source, Ring::with_source(source, bytes, overflow).expect("an available source"))
        })
    }

    const CAPACITY: u64 = 1024;

    /// Returns a shard with these ends, and its memory.
    fn with_ends(head: u64, tail: u64) -> (Vec<layout::Word>, Shard) {
        let words = (layout::DATA + CAPACITY as usize) / 8;
        let memory: Vec<layout::Word> = (0..words).map(|_| layout::Word::new(0)).collect();
        memory[layout::HEAD / 8].store(head, Relaxed);
        memory[layout::TAIL / 8].store(tail, Relaxed);
        let shard = Shard { address: memory.as_ptr().expose_provenance(), capacity: CAPACITY };
        (memory, shard)
    }

    #[test]
    fn room_is_what_the_ends_leave_even_if_they_are_of_different_times() {
        let request = Append::new(&[0; 8], CAPACITY).expect("a record that fits");
        for (head, tail, expected) in [
            (0, 0, true),
            (CAPACITY, 0, false),
            (CAPACITY, CAPACITY, true),
            // The tail was loaded after other threads had appended and discarded.
            (64, 128, true),
            (u64::MAX - 7, 8, true),
            (8, u64::MAX - 7, true),
            (CAPACITY - 8, u64::MAX - 7, false),
        ] {
            let (_memory, shard) = with_ends(head, tail);
            assert_eq!(shard.has_room(&request), expected, "head {head}, tail {tail}");
        }
    }

    #[test]
    fn discarding_frees_whole_records_an_eighth_at_a_time() {
        let (_memory, shard) = with_ends(0, 0);
        let request = |length| Append::new(&[7; 64][..length], CAPACITY).expect("it fits");
        assert_eq!(shard.worth_keeping(&request(8)), CAPACITY - CAPACITY / 8);
        let longest = vec![0; layout::max_record_len(CAPACITY) as usize];
        let longest = Append::new(&longest, CAPACITY).expect("it fits");
        assert_eq!(shard.worth_keeping(&longest), CAPACITY - longest.needed);
        (0..12).for_each(|_| shard.append(&request(64)));
        let (_, head) = shard.ends();
        for keep in (0..=head).rev().step_by(8) {
            shard.discard(keep);
            let (tail, _) = shard.ends();
            assert!((keep.saturating_sub(64)..=keep).contains(&(head - tail)), "{keep}: {tail}");
            assert_eq!(tail % request(64).size, 0);
        }
    }

    #[test]
    fn the_numbers_of_records_come_round() {
        const LAST: u64 = (1 << 48) - 1;
        let (memory, shard) = with_ends(0, 0);
        memory[layout::DATA / 8].store(LAST * layout::ONE, Relaxed);
        (0..3).for_each(|_| shard.append(&Append::new(b"it", CAPACITY).expect("it fits")));
        let mut buffer = Vec::new();
        let mut read = || {
            let mut reading = Reading::start(shard, true);
            reading.next(&mut buffer).map(|read| (read.number, read.skipped))
        };
        assert_eq!(read(), Some((LAST, LAST)), "none was expected before");
        assert_eq!((read(), read(), read()), (Some((0, 0)), Some((1, 0)), None));
        // The record with the last number but one follows a gap.
        let (_, head) = shard.ends();
        memory[(layout::DATA + head as usize) / 8].store((LAST - 1) * layout::ONE, Relaxed);
        shard.append(&Append::new(b"it", CAPACITY).expect("it fits"));
        assert_eq!(read(), Some((LAST - 1, LAST - 3)));
        memory[(layout::DATA + head as usize + 16) / 8].store(0, Relaxed);
        shard.append(&Append::new(b"it", CAPACITY).expect("it fits"));
        assert_eq!(read(), Some((0, 1)));
    }

    #[test]
    fn where_the_newest_are_kept_the_tail_is_the_writers() {
        let (_memory, shard) = with_ends(0, 0);
        let request = Append::new(&[7; 200], CAPACITY).expect("it fits");
        (0..4).for_each(|_| shard.append(&request));
        let mut reading = Reading::start(shard, false);
        let mut buffer = Vec::new();
        assert!((0..4).all(|_| reading.next(&mut buffer).is_some()));
        reading.finish();
        assert_eq!(shard.ends(), (0, 4 * request.size));
    }

    /// The tail moves a quarter of the ring at a time, and to the end when the reading ends.
    #[test]
    fn a_consumer_gives_room_back_while_it_reads_but_not_for_every_record() {
        let (memory, shard) = with_ends(0, 0);
        let request = Append::new(&[7; 8], CAPACITY).expect("a record that fits");
        let mut records = 0;
        while shard.has_room(&request) {
            shard.append(&request);
            records += 1;
        }
        let tail = || memory[layout::TAIL / 8].load(Relaxed);
        let mut reading = Reading::start(shard, true);
        let mut buffer = Vec::new();
        for record in 1..=records {
            let read = reading.next(&mut buffer).expect("there are so many");
            assert_eq!((read.number, read.skipped), (record - 1, 0));
            assert_eq!(tail(), record * request.size / (CAPACITY / 4) * (CAPACITY / 4));
        }
        assert!(reading.next(&mut buffer).is_none());
        assert!(tail() < records * request.size);
        reading.finish();
        assert_eq!(tail(), records * request.size);
    }

    fn all(ring: &Ring) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        let mut consumer = ring.consumer().expect("no other consumer");
        let count = consumer.poll(|event| records.push(event.bytes.to_vec()));
        assert_eq!(count, records.len());
        records
    }

    #[test]
    fn records_of_every_length_come_out_as_they_went_in() {
        for (source, ring) in rings(4096, Overflow::DropNewest) {
            for length in 0..=ring.max_record_len() {
                let record: Vec<u8> = (0..length).map(|byte| (byte * 7 + length) as u8).collect();
                assert_eq!(ring.append(&record), Ok(()), "{source} {length}");
                assert_eq!(all(&ring), [record], "{source} {length}");
            }
            let too_long = vec![0; ring.max_record_len() + 1];
            assert_eq!(ring.append(&too_long), Err(AppendError::TooLong), "{source}");
            assert_eq!(ring.lost(), 1, "{source}");
        }
    }

    /// The thread may be moved to a CPU whose shard has room, and back.
    #[test]
    fn a_full_ring_keeps_the_oldest_if_told_so() {
        for (source, ring) in rings(256, Overflow::DropNewest) {
            let append = |number: u64| ring.append(&number.to_ne_bytes());
            let kept: Vec<u64> =
                (0..100).filter(|&number| append(number) != Err(AppendError::Full)).collect();
            assert!(kept[0] == 0 && kept.len() < 100, "{source}: {kept:?}");
            let (mut records, mut shared) = (Vec::new(), 0);
            ring.consumer().expect("no other consumer").poll(|event| {
                records.push(u64::from_ne_bytes(event.bytes.try_into().expect("8 bytes")));
                shared += usize::from(event.id.is_none());
            });
            records.sort_unstable();
            assert_eq!(records, kept, "{source}");
            // A thread that is interrupted repeatedly uses the shared shard once.
            assert!(shared < 10, "{source}: {shared} records went where threads without ID go");
            assert_eq!(ring.lost(), 100 - kept.len() as u64, "{source}");
            assert_eq!(ring.append(b"there is room again"), Ok(()), "{source}");
        }
    }

    /// A thread whose CPU has lost its ID takes the slow path, and finds room there.
    #[cfg(feature = "testing")]
    #[test]
    fn a_record_without_an_id_is_not_one_without_room() {
        if Source::Table.prepare().is_err() {
            return;
        }
        let ring = Ring::with_source(Source::Table, 1 << 16, Overflow::DropNewest).expect("it is");
        let mut losses = 0;
        for _ in 0..200 {
            let lost = crate::testing::steal(crate::sys::affinity::current_cpu());
            losses += u32::from(lost.is_some());
            assert_eq!(ring.append(b"there is room"), Ok(()));
            lost.into_iter().for_each(|id| id.put_back(None));
        }
        assert!(losses > 0, "no CPU ever lost its ID");
    }

    #[test]
    fn a_full_ring_keeps_the_newest_if_told_so() {
        for (source, ring) in rings(1024, Overflow::OverwriteOldest) {
            for number in 0..1000u64 {
                assert_eq!(ring.append(&number.to_ne_bytes()), Ok(()), "{source}");
            }
            let mut records = Vec::new();
            let mut shared = 0;
            let mut consumer = ring.consumer().expect("no other consumer");
            consumer.poll(|event| {
                records.push(event.bytes.to_vec());
                shared += usize::from(event.id.is_none());
            });
            assert!(records.contains(&999u64.to_ne_bytes().to_vec()), "{source}");
            assert!(records.len() >= 1024 / 16 * 3 / 4, "{source}: {}", records.len());
            assert_eq!(records.len() as u64 + ring.lost(), 1000, "{source}");
            // A thread that is interrupted repeatedly uses the shared shard once.
            assert!(shared < 10, "{source}: {shared} records went where threads without ID go");
        }
    }

    #[test]
    fn there_is_one_consumer_and_the_next_goes_on() {
        let ring = Ring::new(1024, Overflow::DropNewest);
        ring.append(b"one").expect("room");
        let consumer = ring.consumer().expect("no other consumer");
        assert!(ring.consumer().is_none());
        drop(consumer);
        assert_eq!(all(&ring), [b"one"]);
        ring.append(b"two").expect("room");
        assert_eq!(all(&ring), [b"two"]);
    }

    /// The shared shard is for threads whose own shard is in use, and for those without an ID.
    #[test]
    fn who_finds_its_shard_in_use_appends_to_the_shared_one() {
        let ring = || Ring::with_source(Source::Atomic, 1024, Overflow::DropNewest);
        loop {
            let ring = ring().expect("atomics");
            ring.append(b"own").expect("room");
            let State::Claimed(block, _) = ring.handle.state() else { panic!("it has memory") };
            let ids = Source::Atomic.id_count();
            let lock = |id: u32| ring.shard_at(block.of_id(id)).lock().try_lock();
            let of_ids: Vec<_> = (0..ids).map(|id| lock(id).expect("nobody else")).collect();
            let appended = ring.append(b"shared");
            let shared = ring.shard_at(block.0).lock().try_lock();
            let refused = ring.append(b"lost");
            drop((shared, of_ids));
            if Source::Atomic.id_count() != ids {
                // The thread may have moved to a CPU whose shard the test has not locked.
                continue;
            }
            assert_eq!((appended, refused), (Ok(()), Err(AppendError::Busy)));
            let mut events = Vec::new();
            let mut consumer = ring.consumer().expect("no other consumer");
            consumer.poll(|event| events.push((event.id.is_some(), event.bytes.to_vec())));
            assert_eq!(events, [(false, b"shared".to_vec()), (true, b"own".to_vec())]);
            assert_eq!(ring.lost(), 1);
            return;
        }
    }

    #[test]
    fn the_memory_of_rings_is_used_again() {
        for (source, ring) in rings(Ring::MAX_BYTES, Overflow::DropNewest) {
            drop(ring);
            // More than fit the address space that is reserved for all rings.
            for _ in 0..1000 {
                let ring = Ring::with_source(source, Ring::MAX_BYTES, Overflow::DropNewest);
                assert_eq!(ring.expect("an available source").append(b""), Ok(()), "{source}");
            }
        }
    }

    /// Writers of numbered records against a consumer: every record is delivered whole, in order by
    /// writer and ID, once.
    #[test]
    fn nothing_is_torn_doubled_or_lost_uncounted() {
        const WRITERS: u64 = 4;
        const RECORDS: u64 = if cfg!(miri) { 100 } else { 50_000 };
        for overflow in [Overflow::DropNewest, Overflow::OverwriteOldest] {
            for (source, ring) in rings(4096, overflow) {
                let mut delivered = 0;
                let mut last: HashMap<(Option<u32>, u64), u64> = HashMap::new();
                let mut check = |event: Event<'_>| {
                    let words: Vec<u64> = event
                        .bytes
                        .chunks_exact(8)
                        .map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")))
                        .collect();
                    let (writer, number) = (words[0], words[1]);
                    assert!(
                        words[2..].iter().all(|&word| word == number),
                        "{source}: torn {words:?}"
                    );
                    assert_eq!(words.len() as u64, 2 + number % 5, "{source}: cut");
                    let before = last.insert((event.id, writer), number);
                    assert!(before.is_none_or(|before| before < number), "{source}: order");
                    delivered += 1;
                };
                std::thread::scope(|scope| {
                    let workers: Vec<_> = (0..WRITERS)
                        .map(|writer| {
                            let ring = &ring;
                            scope.spawn(move || {
                                for number in 0..RECORDS {
                                    let mut record = vec![number; 2 + number as usize % 5];
                                    record[0] = writer;
                                    let bytes: Vec<u8> =
                                        record.iter().flat_map(|word| word.to_ne_bytes()).collect();
                                    let _ = ring.append(&bytes);
                                }
                            })
                        })
                        .collect();
                    let mut consumer = ring.consumer().expect("no other consumer");
                    while workers.iter().any(|worker| !worker.is_finished()) {
                        consumer.poll(&mut check);
                    }
                    consumer.poll(&mut check);
                });
                assert_eq!(delivered + ring.lost(), WRITERS * RECORDS, "{source} {overflow:?}");
            }
        }
    }
}
