//! The operations of percid's buckets.

use std::sync::atomic::Ordering::SeqCst;

use percid::Buckets;
use percid::testing::{self, Stolen};
use percid_subject::board::Board;
use percid_subject::{Fault, Operation, Party};

use crate::findings;
use crate::structure::Structure;

static BUCKETS: Buckets = Buckets::new(8);

/// The bucket of the values of these operations, the value, and the bucket of earlier values.
const BUCKET: usize = 3;
const VALUE: f64 = 2.0;
const OTHERS: usize = 5;

pub(crate) struct Tallies;

impl Structure for Tallies {
    fn prepare(&self, _: Operation, _: &Board) {
        record_many(OTHERS, 1);
    }

    fn perform(&self, operation: Operation, amount: i64) {
        match operation {
            Operation::Tally => percid_buckets_record(&BUCKETS, BUCKET, VALUE),
            _ => record_many(BUCKET, amount as u64),
        }
    }

    fn interrupt(&self, _: Operation) {
        record_many(BUCKET, Party::Handler.amount() as u64);
    }

    fn rob(&self, _: Operation, stolen: &Stolen) -> bool {
        let times = Party::Thief.amount() as u64;
        stolen.tally_unprotected(&BUCKETS, BUCKET, times, VALUE * times as f64);
        true
    }

    fn audit(&self, _: Operation, board: &Board) {
        let mut in_copies = 0;
        for (id, place) in board.copies.iter().enumerate() {
            let count = testing::tallied_by_id(&BUCKETS, BUCKET, id as u32) as i64;
            place.store(count, SeqCst);
            in_copies += count;
        }
        let mut counts = [0; 8];
        let sum = BUCKETS.read(&mut counts);
        board.shared.store(counts[BUCKET] as i64 - in_copies, SeqCst);
        let elsewhere = (0..8).any(|at| ![BUCKET, OTHERS].contains(&at) && counts[at] != 0);
        let all: u64 = counts.iter().sum();
        let faults = [
            elsewhere.then_some(Fault::Misplaced),
            (sum != VALUE * all as f64).then_some(Fault::Uncounted),
        ];
        for fault in faults.into_iter().flatten() {
            findings::fault(fault);
            findings::publish_faults(board);
        }
    }
}

/// Records values. Out of line, so that this preparation has no section of its own in the caller.
#[inline(never)]
fn record_many(bucket: usize, times: u64) {
    BUCKETS.record_many(bucket, times, VALUE * times as f64);
}

/// Records a value. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_buckets_record(buckets: &Buckets, bucket: usize, value: f64) {
    buckets.record(bucket, value);
}
