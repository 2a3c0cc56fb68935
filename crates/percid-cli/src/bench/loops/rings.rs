//! Rings: one record appended, which is not read until the end.

#[cfg(feature = "peers")]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "peers")]
use crossbeam_queue::ArrayQueue;
use percid::{Overflow, Ring};

use super::form::repeat;
use super::operation::{Account, Family, Measured, Operation};

const FAMILY: Family = Family::Rings;
/// Bytes for every ID: small enough for the second-level cache, large enough that a record rarely
/// pays for overwriting.
const BYTES: usize = 64 * 1024;

pub(super) fn operations() -> impl Iterator<Item = Operation> {
    let others = [
        #[cfg(feature = "peers")]
        Operation::other(FAMILY, "array_queue_overwrite", Queue::default()),
    ];
    let appended = |name, overflow| {
        let ring = move |source| Ring::with_source(source, BYTES, overflow);
        Operation::per_source(FAMILY, name, ring)
    };
    others
        .into_iter()
        .chain(appended("ring_append", Overflow::OverwriteOldest))
        .chain(appended("ring_append_full", Overflow::DropNewest))
}

/// One queue of records for all threads that overwrites the oldest, and the number of overwritten
/// ones.
#[cfg(feature = "peers")]
struct Queue {
    records: ArrayQueue<Record>,
    lost: AtomicU64,
}

#[cfg(feature = "peers")]
impl Default for Queue {
    fn default() -> Self {
        let records = ArrayQueue::new(BYTES / size_of::<Record>());
        Queue { records, lost: AtomicU64::new(0) }
    }
}

#[cfg(feature = "peers")]
impl Measured for Queue {
    fn repeat(&self, times: u64, _: usize) {
        self.lost.fetch_add(force_push(&self.records, times), Ordering::Relaxed);
    }

    fn account(&self, done: u64) -> Option<Account> {
        let kept = std::iter::from_fn(|| self.records.pop()).count() as u64;
        Some(Account::of(done, (kept + self.lost.load(Ordering::Relaxed)) as i64))
    }
}

#[cfg(feature = "peers")]
#[inline(never)]
fn force_push(records: &ArrayQueue<Record>, times: u64) -> u64 {
    let mut lost = 0;
    repeat(times, |left| lost += u64::from(records.force_push(record(left)).is_some()));
    lost
}

impl Measured for Ring {
    fn repeat(&self, times: u64, _: usize) {
        append(self, times);
    }

    /// Compares the appended records with those that are left and those that count as lost.
    fn account(&self, done: u64) -> Option<Account> {
        let mut consumer = self.consumer()?;
        let mut kept = 0;
        loop {
            match consumer.poll(|_| ()) {
                0 => break,
                records => kept += records as u64,
            }
        }
        Some(Account::of(done, (kept + self.lost()) as i64))
    }
}

#[inline(never)]
fn append(ring: &Ring, times: u64) {
    repeat(times, |left| {
        let _ = ring.append(&record(left));
    });
}

/// Two words, such as an event and its time.
type Record = [u8; 16];

#[inline(always)]
fn record(number: u64) -> Record {
    (u128::from(number) << 64 | u128::from(!number)).to_ne_bytes()
}
