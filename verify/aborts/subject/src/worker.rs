//! The worker: does one operation after the other and stops in between for its tracer.

use std::sync::atomic::Ordering::SeqCst;

use percid_subject::Operation;
use percid_subject::board::Board;

use crate::{accomplice, cells, counters, handler};

/// Works for ever; the tracer ends the process.
pub(crate) fn work(board: &'static Board) -> ! {
    counters::prepare();
    board.area.store(cells::area(), SeqCst);
    handler::install(board);
    accomplice::start(board);
    loop {
        publish(board);
        stop();
        if board.look_only.load(SeqCst) == 0 {
            perform(board);
        }
    }
}

/// Where the tracer finds the worker between two operations.
#[inline(never)]
fn stop() {
    // SAFETY: a trap that changes nothing; the tracer answers it.
    unsafe { std::arch::asm!("int3") };
}

fn perform(board: &Board) {
    let Some(operation) = Operation::from_number(board.operation.load(SeqCst)) else { return };
    let amount = board.amount.load(SeqCst);
    let run = if operation.is_own() { cells::of(operation) } else { counters::of(operation) };
    run(amount);
}

fn publish(board: &Board) {
    let Some(operation) = Operation::from_number(board.operation.load(SeqCst)) else { return };
    let publish = if operation.is_own() { cells::publish } else { counters::publish };
    publish(operation, board);
}
