//! Histograms: every record is in exactly one snapshot.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid::histogram::Snapshot;
use percid::id::SourceError;
use percid::{Histogram, Source};

use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

/// Records of a batch.
const BATCH: usize = 500;

/// The values that are recorded: 0 and powers of two, each in a bucket of its own.
const VALUES: usize = 16;

struct Histograms {
    histogram: Histogram,
    recorded: [AtomicU64; VALUES],
    taken: Mutex<Snapshot>,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    Ok(Box::new(Histograms {
        histogram: Histogram::with_source(source)?,
        recorded: [const { AtomicU64::new(0) }; VALUES],
        taken: Mutex::new(Snapshot::new()),
    }))
}

fn value(index: usize) -> u64 {
    index.checked_sub(1).map_or(0, |power| 1 << (4 * power))
}

impl Subject for Histograms {
    fn work(&self, random: &mut Random) {
        for _ in 0..BATCH {
            let index = random.below(VALUES);
            self.histogram.record(value(index));
            self.recorded[index].fetch_add(1, Relaxed);
        }
    }

    fn handle(&self) {
        self.histogram.record_many(value(1), 3);
        self.recorded[1].fetch_add(3, Relaxed);
    }

    fn visit(&self) {
        let taken = self.histogram.take();
        self.taken.lock().expect("no panic").merge(&taken);
    }

    fn account(&self) -> Verdict {
        self.visit();
        let taken = self.taken.lock().expect("no panic");
        let counted = |index| {
            let bucket = taken.buckets().find(|bucket| bucket.low == value(index));
            bucket.map_or(0, |bucket| bucket.count)
        };
        let recorded: Vec<u64> = self.recorded.iter().map(|count| count.load(Relaxed)).collect();
        let wrong = (0..VALUES).filter(|&index| counted(index) != recorded[index]).count();
        let records: u64 = recorded.iter().sum();
        let lost = records as i64 - taken.count() as i64;
        verdict(
            wrong == 0 && lost == 0,
            format!("records={records} lost={lost} wrong_buckets={wrong}"),
        )
    }
}
