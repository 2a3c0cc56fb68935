//! Rings: one record appended, which nobody reads until the end.

use percid::{Overflow, Ring};

use super::form::repeat;
use super::{Account, Family, Measured, Operation};

const FAMILY: Family = Family::Rings;
/// Bytes for every ID: small enough for the second cache, large enough that overwriting is a matter of course and not
/// of every record.
const BYTES: usize = 64 * 1024;

pub(super) fn operations() -> impl Iterator<Item = Operation> {
    Operation::per_source(FAMILY, "ring_append", |source| {
        Ring::with_source(source, BYTES, Overflow::OverwriteOldest)
    })
}

impl Measured for Ring {
    fn repeat(&self, times: u64, _: usize) {
        append(self, times);
    }

    /// Records appended, against those that are still there and those that count as lost.
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
        ring.append(&record(left));
    });
}

/// Two words, as of an event and its time.
#[inline(always)]
fn record(number: u64) -> [u8; 16] {
    (u128::from(number) << 64 | u128::from(!number)).to_ne_bytes()
}
