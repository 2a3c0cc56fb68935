//! Records of accesses, some of which may be lost: [`ReadBuffer`].

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use percid::id::SourceError;
use percid::per_id::{Field, Unchanged, Word};
use percid::{PerId, Source};

use crate::guess::{Try, with_guess};

/// The records for which an ID has room: with two more words they fill four cache lines.
const ROOM: usize = 30;

/// The records of an ID.
struct Shard {
    used: Word,
    slots: [Word; ROOM],
}

thread_local! {
    /// The number of records that an ID probably has.
    static GUESS: Cell<i64> = const { Cell::new(0) };
}

const USED: Field<Shard, Word> = percid::field!(Shard, used);
const SLOTS: Field<Shard, [Word; ROOM]> = percid::field!(Shard, slots);

impl Shard {
    fn new() -> Shard {
        Shard { used: Word::new(0), slots: [const { Word::new(0) }; ROOM] }
    }
}

/// A record of 64 bits: a hash, an index, a key.
///
/// ```
/// use percid_sync::Record;
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct Access {
///     entry: u32,
///     frequency: u32,
/// }
///
/// impl Record for Access {
///     fn to_bits(self) -> u64 {
///         u64::from(self.entry) << 32 | u64::from(self.frequency)
///     }
///     fn from_bits(bits: u64) -> Access {
///         Access { entry: (bits >> 32) as u32, frequency: bits as u32 }
///     }
/// }
/// let access = Access { entry: 7, frequency: 1 };
/// assert_eq!(Access::from_bits(access.to_bits()), access);
/// ```
pub trait Record: Copy {
    /// Returns the record's bits.
    fn to_bits(self) -> u64;

    /// Returns the record of these bits.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! integers_are_records {
    ($($integer:ty),*) => {$(
        impl Record for $integer {
            #[inline(always)]
            fn to_bits(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}

integers_are_records!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

/// Records of accesses, made by every thread and read by one that maintains something by them, such
/// as the order of eviction of a cache. An ID has room for 30 of them; more are lost.
///
/// ```
/// use percid_sync::ReadBuffer;
///
/// static HITS: ReadBuffer<u32> = ReadBuffer::new();
///
/// HITS.record(17);
/// HITS.record(4);
/// let mut hits = Vec::new();
/// assert_eq!(HITS.drain(|hit| hits.push(hit)), 2);
/// hits.sort();
/// assert_eq!(hits, [4, 17]);
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. A record is drained
///   once, or lost; it is never torn.
/// * **Order**: the records of an ID are drained in their order; those of one thread may lie on
///   several IDs.
/// * **Waiting**: [`record`](ReadBuffer::record) never waits. [`drain`](ReadBuffer::drain) waits for
///   other drains.
/// * **Signals**: `record` is async-signal-safe if the record's `to_bits` is. `drain` is not.
/// * **Fork**: the child has a copy.
/// * **Memory**: the size of the object, plus 256 bytes for every ID that used it. If there is none, records are lost.
/// * **Cost**: a record is one section with two stores, and a second one if the thread used another
///   buffer in between. A drain runs a fence of all CPUs,
///   about 10 us, for every 64 IDs. If `membarrier` is refused, it drains nothing.
pub struct ReadBuffer<T> {
    shards: PerId<Shard>,
    records: PhantomData<fn(T) -> T>,
}

impl<T: Record> ReadBuffer<T> {
    /// Creates a buffer without records.
    ///
    /// ```
    /// static HITS: percid_sync::ReadBuffer<u64> = percid_sync::ReadBuffer::new();
    /// ```
    #[must_use]
    pub const fn new() -> ReadBuffer<T> {
        ReadBuffer { shards: PerId::new(Shard::new), records: PhantomData }
    }

    /// Creates a buffer whose records are kept by `source`, whatever the process has chosen.
    ///
    /// ```
    /// let hits = percid_sync::ReadBuffer::<u64>::with_source(percid::Source::Atomic)?;
    /// assert!(hits.record(5));
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source) -> Result<ReadBuffer<T>, SourceError> {
        let shards = PerId::with_source(source, Shard::new as fn() -> Shard)?;
        Ok(ReadBuffer { shards, records: PhantomData })
    }

    /// Records an access. Returns `false` if it was lost: the ID has no room, which is a reason to
    /// drain, or other threads were recording.
    ///
    /// ```
    /// let hits = percid_sync::ReadBuffer::<u64>::with_source(percid::Source::Atomic)?;
    /// assert!(hits.record(5));
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    #[inline]
    pub fn record(&self, record: T) -> bool {
        let bits = record.to_bits() as i64;
        let done = with_guess(&GUESS, |used| {
            let Some(slot) = usize::try_from(used).ok().filter(|&slot| slot < ROOM) else {
                // The next guess is wrong and finds the number.
                return Try::Done(false, 0);
            };
            match self.shards.store_both_if(USED, used, used + 1, (SLOTS.at(slot), bits)) {
                Ok(_) if slot + 1 == ROOM => Try::Done(true, 0),
                Ok(_) => Try::Done(true, used + 1),
                Err(Unchanged::Differs(now)) => Try::Differs(now),
                Err(_) => Try::Done(false, 0),
            }
        });
        done == Some(true)
    }

    /// Calls a function with each record and removes it. Returns their number.
    ///
    /// ```
    /// let hits = percid_sync::ReadBuffer::<u64>::new();
    /// hits.record(5);
    /// assert_eq!(hits.drain(|hit| assert_eq!(hit, 5)), 1);
    /// assert_eq!(hits.drain(|_| unreachable!()), 0);
    /// ```
    pub fn drain(&self, mut function: impl FnMut(T)) -> usize {
        let mut number = 0;
        for shard in self.shards.visit() {
            let used = usize::try_from(shard.used.load()).unwrap_or(0).min(ROOM);
            // The records are removed first: a function that panics loses them.
            shard.used.store(0);
            let records = shard.slots[..used].iter();
            records.for_each(|slot| function(T::from_bits(slot.load() as u64)));
            number += used;
        }
        number
    }
}

impl<T: Record> Default for ReadBuffer<T> {
    fn default() -> Self {
        ReadBuffer::new()
    }
}

impl<T> fmt::Debug for ReadBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records: i64 = self.shards.iter().map(|(_, shard)| shard.used.load()).sum();
        f.debug_struct("ReadBuffer").field("records", &records).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    };
    use std::thread;

    use super::*;

    fn buffers() -> impl Iterator<Item = ReadBuffer<u64>> {
        let sources = Source::ALL.iter().copied().filter(|source| source.prepare().is_ok());
        sources.map(|source| ReadBuffer::with_source(source).expect("an available source"))
    }

    #[test]
    fn records_are_drained_in_order_and_more_are_lost() {
        for buffer in buffers() {
            let recorded: Vec<u64> = (0..1000).filter(|&n| buffer.record(n)).collect();
            assert!(recorded.len() >= ROOM, "the thread may have been moved");
            assert!(format!("{buffer:?}").starts_with("ReadBuffer { records: "));
            let mut drained = Vec::new();
            assert_eq!(buffer.drain(|record| drained.push(record)), recorded.len());
            drained.sort_unstable();
            assert_eq!(drained, recorded);
            assert_eq!(buffer.drain(|_| unreachable!()), 0);
        }
    }

    #[test]
    fn integers_come_back() {
        assert_eq!(i8::from_bits((-3_i8).to_bits()), -3);
        assert_eq!(i64::from_bits(i64::MIN.to_bits()), i64::MIN);
        assert_eq!(u16::from_bits(65_535_u16.to_bits()), 65_535);
    }

    /// Threads record different numbers while others drain: each is drained once or lost.
    #[test]
    fn no_record_is_torn_or_doubled() {
        const THREADS: u64 = 3;
        const RECORDS: u64 = if cfg!(miri) { 40 } else { 50_000 };
        for buffer in buffers() {
            let running = AtomicUsize::new(THREADS as usize);
            let (mut seen, mut recorded) = (vec![false; (THREADS * RECORDS) as usize], 0);
            let mut take = |record: u64| {
                // Both halves are the number: a torn record has two.
                assert_eq!(record >> 32, record & 0xffff_ffff);
                let first = !std::mem::replace(&mut seen[(record >> 32) as usize], true);
                assert!(first, "drained twice");
            };
            let mut drained = 0;
            thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        let (buffer, running) = (&buffer, &running);
                        scope.spawn(move || {
                            let own = thread * RECORDS..(thread + 1) * RECORDS;
                            let kept = own.filter(|n| buffer.record(n << 32 | n)).count();
                            running.fetch_sub(1, Release);
                            kept
                        })
                    })
                    .collect();
                while running.load(Acquire) > 0 {
                    drained += buffer.drain(&mut take);
                    thread::yield_now();
                }
                recorded = threads.into_iter().map(|thread| thread.join().expect("none")).sum();
            });
            drained += buffer.drain(&mut take);
            assert_eq!(drained, recorded);
            assert!(running.load(Relaxed) == 0 && drained > 0);
        }
    }
}
