//! Histograms: one value recorded.

#[cfg(feature = "peers")]
use std::sync::Mutex;

#[cfg(feature = "peers")]
use hdrhistogram::Histogram as HdrHistogram;
use percid::Histogram;

use super::form::repeat;
use super::operation::{Account, Family, Measured, Operation};

const FAMILY: Family = Family::Histograms;
/// Values are below 2 to this power: nanoseconds up to a millisecond.
const VALUE_BITS: u32 = 20;

pub(super) fn operations() -> impl Iterator<Item = Operation> {
    let others = [
        #[cfg(feature = "peers")]
        Operation::other(FAMILY, "hdrhistogram", Record(shared_hdrhistogram())),
    ];
    others.into_iter().chain(Operation::per_source(FAMILY, "histogram_record", |source| {
        Histogram::with_source(source).map(Record)
    }))
}

/// A histogram in the loop.
trait Recorder: Sync {
    fn record(&self, value: u64);

    /// Returns the number of recorded values.
    fn count(&self) -> u64;
}

/// Returns a histogram of fixed size with two significant digits: the crate's cheapest, and coarser
/// than percid's.
#[cfg(feature = "peers")]
fn shared_hdrhistogram() -> Mutex<HdrHistogram<u64>> {
    let histogram = HdrHistogram::new_with_max(1 << VALUE_BITS, 2);
    Mutex::new(histogram.expect("valid bounds"))
}

#[cfg(feature = "peers")]
impl Recorder for Mutex<HdrHistogram<u64>> {
    #[inline(always)]
    fn record(&self, value: u64) {
        let recorded = self.lock().expect("no thread panics with it").record(value);
        debug_assert!(recorded.is_ok());
    }

    fn count(&self) -> u64 {
        self.lock().expect("no thread panics with it").len()
    }
}

impl Recorder for Histogram {
    #[inline(always)]
    fn record(&self, value: u64) {
        Histogram::record(self, value);
    }

    fn count(&self) -> u64 {
        self.snapshot().count()
    }
}

struct Record<H>(H);

impl<H: Recorder> Measured for Record<H> {
    fn repeat(&self, times: u64, _: usize) {
        record(&self.0, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, self.0.count() as i64))
    }
}

#[inline(never)]
fn record<H: Recorder>(histogram: &H, times: u64) {
    repeat(times, |left| histogram.record(scattered(left)));
}

/// Maps consecutive numbers to values all over the range, by one multiplication and a shift.
#[inline(always)]
fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - VALUE_BITS)
}
