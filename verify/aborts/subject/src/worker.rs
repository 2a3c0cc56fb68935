//! The worker: does one operation after the other and stops before and after for its tracer.

use std::sync::atomic::Ordering::SeqCst;

use percid_subject::Operation;
use percid_subject::board::Board;

use crate::structure::{self, Structure};
use crate::{accomplice, cells, handler, masks};

/// Works forever; the tracer ends the process.
pub(crate) fn work(board: &'static Board) -> ! {
    // First uses and the registration for the fence, which would take another way and long.
    for operation in Operation::PERCID {
        structure::of(operation).prepare(operation, board);
        structure::of(operation).perform(operation, 0);
        structure::of(operation).audit(operation, board);
    }
    masks::prepare();
    board.area.store(cells::area(), SeqCst);
    handler::install(board);
    accomplice::start(board);
    loop {
        prepare(board);
        stop();
        if board.look_only.load(SeqCst) == 0 {
            perform(board);
        }
        stop();
        audit(board);
    }
}

/// Stops at the place where the tracer finds the worker. The code before and after an operation is
/// not tested: while it runs, only the traps of the pads are set.
#[inline(never)]
fn stop() {
    // SAFETY: a trap that changes nothing; the tracer handles it.
    unsafe { std::arch::asm!("int3") };
}

fn prepare(board: &Board) {
    if let Some((structure, operation)) = structure::chosen(board) {
        structure.prepare(operation, board);
    }
}

fn perform(board: &Board) {
    if let Some((structure, operation)) = structure::chosen(board) {
        structure.perform(operation, board.amount.load(SeqCst));
        note_id(structure, board);
    }
}

/// Publishes the ID. Out of line, so that an ID stays in no register that the tracer compares.
#[inline(never)]
fn note_id(structure: &dyn Structure, board: &Board) {
    let id = structure.current_id();
    board.current_id.store(id.map_or(-1, |id| id as i32), SeqCst);
}

fn audit(board: &Board) {
    if let Some((structure, operation)) = structure::chosen(board) {
        structure.audit(operation, board);
    }
}
