//! The findings of the audits so far: the places where operations took place, and the damage.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::SeqCst};

use percid_subject::Fault;
use percid_subject::board::{Board, COPIES};

static BY_ID: [AtomicI64; COPIES] = [const { AtomicI64::new(0) }; COPIES];
static SHARED: AtomicI64 = AtomicI64::new(0);
static FAULTS: AtomicI64 = AtomicI64::new(0);
static LAST_FAULT: AtomicU32 = AtomicU32::new(0);

/// Records that something took place in the copy of an ID; `None`: without one.
pub(crate) fn took_place(id: Option<u32>, amount: i64) {
    let place = id.and_then(|id| BY_ID.get(id as usize)).unwrap_or(&SHARED);
    place.fetch_add(amount, SeqCst);
}

/// Records damage.
pub(crate) fn fault(fault: Fault) {
    FAULTS.fetch_add(1, SeqCst);
    LAST_FAULT.store(fault as u32, SeqCst);
}

/// Puts all of it on the board.
pub(crate) fn publish(board: &Board) {
    for (place, found) in board.copies.iter().zip(&BY_ID) {
        place.store(found.load(SeqCst), SeqCst);
    }
    board.shared.store(SHARED.load(SeqCst), SeqCst);
    publish_faults(board);
}

/// Puts the damage alone on the board, for structures that have their own figures.
pub(crate) fn publish_faults(board: &Board) {
    board.faults.store(FAULTS.load(SeqCst), SeqCst);
    board.last_fault.store(LAST_FAULT.load(SeqCst), SeqCst);
}
