//! Buckets and float counters: every value is counted once and is once in the sum, and what is read
//! or was taken only grows.
//!
//! The thief counts through the stolen ID itself, by loads and stores without any protection.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid::id::SourceError;
use percid::testing::Stolen;
use percid::{Buckets, FloatCounter, Source};

use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

/// Records of a batch, and by the thief through each stolen ID.
const BATCH: usize = 500;
const LOOT: usize = 20;

const BUCKETS: usize = 8;

struct Values {
    buckets: Buckets,
    float: FloatCounter,
    recorded: [AtomicU64; BUCKETS],
    last: Mutex<Last>,
    shrunk: AtomicU64,
}

/// The state that a visit leaves for the next one.
#[derive(Default)]
struct Last {
    visits: u64,
    taken: Read,
    all: Read,
}

/// The values that were read.
#[derive(Clone, Copy, Default)]
struct Read {
    counts: [u64; BUCKETS],
    sum: f64,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    Ok(Box::new(Values {
        buckets: Buckets::with_source(source, BUCKETS)?,
        float: FloatCounter::with_source(source)?,
        recorded: [const { AtomicU64::new(0) }; BUCKETS],
        last: Mutex::default(),
        shrunk: AtomicU64::new(0),
    }))
}

/// Returns the value for a bucket: integers, so that sums are exact.
fn value(bucket: usize) -> f64 {
    (bucket * bucket + 1) as f64
}

impl Read {
    fn add(&mut self, other: &Read) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
    }
}

impl Last {
    /// Reads the buckets, or every other time takes them. Returns what they have now and what was
    /// taken, together.
    fn read(&mut self, buckets: &Buckets) -> Read {
        self.visits += 1;
        let mut now = Read::default();
        if self.visits.is_multiple_of(2) {
            now.sum = buckets.take(&mut now.counts);
            self.taken.add(&now);
            return self.taken;
        }
        now.sum = buckets.read(&mut now.counts);
        now.add(&self.taken);
        now
    }
}

impl Subject for Values {
    fn work(&self, random: &mut Random) {
        for _ in 0..BATCH {
            // Often the same again.
            let bucket = random.below(3 * BUCKETS).saturating_sub(2 * BUCKETS);
            self.buckets.record(bucket, value(bucket));
            self.float.add(value(bucket));
            self.recorded[bucket].fetch_add(1, Relaxed);
        }
        let counts = [0; BUCKETS].map(|_: u64| random.below(4) as u64);
        let sum = (0..BUCKETS).map(|bucket| counts[bucket] as f64 * value(bucket)).sum();
        self.buckets.record_all(&counts, sum);
        self.recorded.iter().zip(counts).for_each(|(all, times)| _ = all.fetch_add(times, Relaxed));
        self.float.add(sum);
    }

    fn handle(&self) {
        self.buckets.record_many(1, 3, 3.0 * value(1));
        self.float.add(3.0 * value(1));
        self.recorded[1].fetch_add(3, Relaxed);
    }

    fn visit(&self) {
        let mut last = self.last.lock().expect("no panic");
        let (all, now) = (last.all, last.read(&self.buckets));
        let shrinks = now.sum < all.sum || all.counts.iter().zip(&now.counts).any(|(a, b)| a > b);
        self.shrunk.fetch_add(u64::from(shrinks), Relaxed);
        last.all = now;
    }

    fn rob(&self, stolen: &Stolen) {
        for number in 0..LOOT {
            let bucket = number % BUCKETS;
            stolen.tally_unprotected(&self.buckets, bucket, 1, value(bucket));
            stolen.add_float_unprotected(&self.float, value(bucket));
            self.recorded[bucket].fetch_add(1, Relaxed);
        }
    }

    fn account(&self) -> Verdict {
        let recorded: Vec<u64> = self.recorded.iter().map(|count| count.load(Relaxed)).collect();
        let added = |bucket: usize| recorded[bucket] as f64 * value(bucket);
        let sum: f64 = (0..BUCKETS).map(added).sum();
        let mut last = self.last.lock().expect("no panic");
        _ = last.read(&self.buckets);
        let read = last.read(&self.buckets);
        let wrong = recorded.iter().zip(&read.counts).filter(|(a, b)| a != b).count();
        let (lost, lost_floats) = (sum - read.sum, sum - self.float.sum());
        let (records, shrunk) = (recorded.iter().sum::<u64>(), self.shrunk.load(Relaxed));
        verdict(
            wrong == 0 && lost == 0.0 && lost_floats == 0.0 && shrunk == 0,
            format!(
                "records={records} wrong_buckets={wrong} sum_lost={lost} float_counter_lost={lost_floats} shrunk={shrunk}"
            ),
        )
    }
}
