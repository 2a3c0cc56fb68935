//! The operation of percid's counters of floats.

use std::sync::atomic::Ordering::SeqCst;

use percid::FloatCounter;
use percid::testing::{self, Stolen};
use percid_subject::board::Board;
use percid_subject::{Operation, Party};

use crate::structure::Structure;

static SUM: FloatCounter = FloatCounter::new();

pub(crate) struct Floats;

impl Structure for Floats {
    fn prepare(&self, _: Operation, _: &Board) {
        add(0.0);
    }

    fn perform(&self, _: Operation, amount: i64) {
        add(amount as f64);
    }

    fn interrupt(&self, _: Operation) {
        add(Party::Handler.amount() as f64);
    }

    fn rob(&self, _: Operation, stolen: &Stolen) -> bool {
        stolen.add_float_unprotected(&SUM, Party::Thief.amount() as f64);
        true
    }

    fn audit(&self, _: Operation, board: &Board) {
        let mut in_copies = 0;
        for (id, place) in board.copies.iter().enumerate() {
            let sum = testing::float_by_id(&SUM, id as u32) as i64;
            place.store(sum, SeqCst);
            in_copies += sum;
        }
        board.shared.store(SUM.sum() as i64 - in_copies, SeqCst);
    }
}

#[inline(never)]
fn add(n: f64) {
    SUM.add(n);
}
