//! The operations of percid's locals.

use std::sync::atomic::{
    AtomicI64,
    Ordering::{Relaxed, SeqCst},
};

use percid::Local;
use percid::testing::{self, Stolen};
use percid_subject::board::{Answer, Board, COPIES};
use percid_subject::{Fault, Operation, Party};

use crate::findings;
use crate::structure::Structure;

static LOCAL: Local<i64> = Local::new(|| 0);

/// In a copy's lock: there is a value, and no thread uses it.
const READY: i64 = 1;
/// In a copy's lock: there is no value.
const NONE: i64 = 0;
/// In a copy's lock: the thief has it. No thread's token, since those are addresses of the program.
const THIEF: i64 = 0x7e7e_0000;
/// The value while the thief has it: a thread that finds it is a second owner.
const FORBIDDEN: i64 = 1 << 60;

/// The ID whose copy the thief holds until the audit, plus 1; 0 if none.
static HELD: AtomicI64 = AtomicI64::new(0);
/// The value that it found.
static SAVED: AtomicI64 = AtomicI64::new(0);

pub(crate) struct Locals;

impl Structure for Locals {
    fn prepare(&self, operation: Operation, _: &Board) {
        if operation == Operation::With {
            percid_local_with(&LOCAL, 0);
        }
    }

    fn perform(&self, _: Operation, amount: i64) {
        percid_local_with(&LOCAL, amount);
    }

    fn interrupt(&self, _: Operation) {
        percid_local_with(&LOCAL, Party::Handler.amount());
    }

    fn visit(&self, _: Operation) -> Answer {
        let ready = copies().filter(|(_, lock, _)| lock.load(SeqCst) == READY).count();
        LOCAL.drain(|value| findings::took_place(None, value));
        if ready > 0 { Answer::Felt } else { Answer::Unfelt }
    }

    /// Takes the copy's lock and keeps it, so that the next one to get in is the second one.
    fn rob(&self, _: Operation, stolen: &Stolen) -> bool {
        let Some((lock, value)) = testing::shard_of_id(&LOCAL, stolen.id()) else { return false };
        if lock.load(Relaxed) != READY {
            return false;
        }
        lock.store(THIEF, Relaxed);
        // SAFETY: the copy has a value, and the ID and so the copy are the thief's.
        SAVED.store(unsafe { value.replace(FORBIDDEN) }, SeqCst);
        HELD.store(i64::from(stolen.id()) + 1, SeqCst);
        true
    }

    fn audit(&self, _: Operation, board: &Board) {
        let held = HELD.swap(0, SeqCst);
        let mut in_copies = 0;
        for (id, lock, value) in copies() {
            if held == i64::from(id) + 1 {
                give_back(lock, value);
            }
            match lock.load(SeqCst) {
                NONE => {}
                READY => {
                    // SAFETY: no thread uses the value between two operations.
                    let value = unsafe { value.read() };
                    findings::took_place(Some(id), value);
                    in_copies += value;
                }
                // Never released: a drain would wait forever.
                _ => {
                    findings::fault(Fault::Lost);
                    lock.store(READY, SeqCst);
                }
            }
        }
        let mut all = 0;
        LOCAL.drain(|value| all += value);
        findings::took_place(None, all - in_copies);
        findings::publish(board);
    }
}

fn copies() -> impl Iterator<Item = (u32, &'static AtomicI64, *mut i64)> {
    (0..COPIES as u32).filter_map(|id| {
        let (lock, value) = testing::shard_of_id(&LOCAL, id)?;
        Some((id, lock, value))
    })
}

/// Releases the thief's copy.
fn give_back(lock: &AtomicI64, value: *mut i64) {
    // SAFETY: the copy has a value, and no thread uses it between two operations.
    let found = unsafe { value.replace(SAVED.load(SeqCst) + Party::Thief.amount()) };
    if lock.swap(READY, SeqCst) != THIEF || found != FORBIDDEN {
        findings::fault(Fault::Shared);
    }
}

/// Adds to a local. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_local_with(local: &Local<i64>, n: i64) {
    local.with(|value| *value += n);
}
