//! The ring, and the fast path of an append.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::append_error::AppendError;
use super::shard::Shard;
use super::turn::Turn;
use crate::arena;
use crate::counter::Counter;
use crate::critical::by_mark;
use crate::critical::ring::{self as layout, Append, DATA};
use crate::handle::{Handle, Needs};
use crate::id::{Source, SourceError};

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
#[non_exhaustive]
pub enum Overflow {
    /// The new record is lost.
    DropNewest = 1,
    /// The oldest records are lost: an eighth of the ring at a time.
    OverwriteOldest = 2,
}

/// The name in lower case.
///
/// ```
/// assert_eq!(percid::Overflow::DropNewest.to_string(), "drop-newest");
/// ```
impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Overflow::DropNewest => "drop-newest",
            Overflow::OverwriteOldest => "overwrite-oldest",
        })
    }
}

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
/// # Size
///
/// The size is that of each ID's ring: the ring of a busy CPU may be full while others are empty.
/// So choose it for the busiest CPU, by the records that it appends between two polls. A record
/// takes its length, rounded up to a multiple of 8, and 8 bytes; another 8 bytes stay free. Polls
/// may be late: leave room for that. With [`Overflow::OverwriteOldest`] the last seven eighths
/// are kept.
///
/// ```
/// use percid::{Overflow, Ring};
///
/// // At most 50,000 records of 40 bytes a second on one CPU, a poll every 100 ms, twice the room.
/// let records = 50_000 / 10 * 2;
/// let bytes: usize = records * (40 + 8) + 8;
/// let ring = Ring::new(bytes.next_power_of_two(), Overflow::DropNewest);
/// assert!((0..records).all(|_| ring.append(&[0; 40]).is_ok()));
/// ```
///
/// # Contract
///
/// * **Threads**: any number of threads may append at once. There is one
///   [`Consumer`](super::Consumer) at a time.
/// * **Order**: records of one ID are delivered in the order in which they were appended, across
///   all polls. Between IDs there is no order, and a thread that moves to another CPU appends to
///   another ID's ring: put a time into the record if order matters.
/// * **Loss**: a record is delivered once or counted as lost once. With
///   [`Overflow::OverwriteOldest`] the loss is counted when the consumer reaches the gap.
/// * **A poll may miss** records that are appended while it runs. It delivers every record whose
///   append *happens before* it, and ends even if writers are faster than it.
/// * **Signals**: [`append`](Ring::append) is async-signal-safe, also in a handler that interrupts
///   it, does not wait, and preserves `errno`.
/// * **Async**: an append holds nothing. The consumer may be held across `.await`, and its task may
///   move to another thread; no other consumer can be made until it is dropped.
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
    pub(super) handle: Handle,
    pub(super) capacity: u64,
    pub(super) overflow: Overflow,
    /// Records that were not appended.
    pub(super) dropped: Counter,
    pub(super) consumption: Consumption,
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

/// The fields that consumers write, on a different cache line than those that every append reads.
#[repr(C, align(64))]
pub(super) struct Consumption {
    /// Records that were found overwritten.
    pub(super) overwritten: AtomicU64,
    pub(super) turn: Turn,
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
    #[must_use]
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
    #[must_use]
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
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.dropped.sum() as u64 + self.consumption.overwritten.load(Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        DATA + self.capacity as usize
    }

    pub(super) fn shard_at(&self, address: usize) -> Shard {
        Shard { address, capacity: self.capacity }
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
