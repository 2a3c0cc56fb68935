//! The operations of percid's histograms.

use std::sync::atomic::Ordering::SeqCst;

use percid::Histogram;
use percid::testing::{self, Stolen};
use percid_subject::board::Board;
use percid_subject::{Fault, Operation, Party};

use crate::findings;
use crate::structure::Structure;

/// The value that is recorded: its bucket contains other values, too.
const VALUE: u64 = 1_000_003;

static HISTOGRAM: Histogram = Histogram::new();

pub(crate) struct Histograms;

impl Structure for Histograms {
    fn prepare(&self, _: Operation, _: &Board) {
        record_many(0);
    }

    fn perform(&self, operation: Operation, amount: i64) {
        match operation {
            Operation::Record => percid_histogram_record(&HISTOGRAM, VALUE),
            _ => record_many(amount as u64),
        }
    }

    fn interrupt(&self, _: Operation) {
        record_many(Party::Handler.amount() as u64);
    }

    fn rob(&self, _: Operation, stolen: &Stolen) -> bool {
        stolen.record_unprotected(&HISTOGRAM, VALUE, Party::Thief.amount() as u64);
        true
    }

    fn audit(&self, _: Operation, board: &Board) {
        let mut in_copies = 0i64;
        for (id, place) in board.copies.iter().enumerate() {
            let count = testing::recorded_by_id(&HISTOGRAM, VALUE, id as u32);
            place.store(count, SeqCst);
            in_copies += count;
        }
        let snapshot = HISTOGRAM.snapshot();
        let bucket = snapshot.buckets().find(|bucket| (bucket.low..=bucket.high).contains(&VALUE));
        let count = bucket.map_or(0, |bucket| bucket.count as i64);
        board.shared.store(count - in_copies, SeqCst);
        if snapshot.buckets().count() > 1 {
            findings::fault(Fault::Misplaced);
            findings::publish_faults(board);
        }
    }
}

#[inline(never)]
fn record_many(times: u64) {
    HISTOGRAM.record_many(VALUE, times);
}

/// Records a value. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_histogram_record(histogram: &Histogram, value: u64) {
    histogram.record(value);
}
