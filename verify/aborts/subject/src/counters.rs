//! The operations of percid's counters.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;

use percid::Counter;
use percid::testing::Stolen;
use percid_subject::board::{Board, COPIES};
use percid_subject::party::STATIC_AMOUNT;
use percid_subject::{Operation, Party};

use crate::structure::Structure;

static STATIC: Counter = Counter::new();
static REFERENCE: OnceLock<Counter> = OnceLock::new();

pub(crate) struct Counters;

impl Structure for Counters {
    /// Uses the operation's counter once: a first use would take another path.
    fn prepare(&self, operation: Operation, _: &Board) {
        REFERENCE.get_or_init(|| {
            let source = percid::init().source;
            Counter::with_source(source).unwrap_or_default()
        });
        percid_reference_add(counter(operation), 0);
    }

    fn perform(&self, operation: Operation, amount: i64) {
        match operation {
            Operation::Static => percid_static_add(),
            Operation::Reference => percid_reference_add(counter(operation), amount),
            Operation::Twice => percid_twice_add(counter(operation), amount),
            _ => self.interrupt(operation),
        }
    }

    fn interrupt(&self, operation: Operation) {
        handler_add(counter(operation));
    }

    fn rob(&self, operation: Operation, stolen: &Stolen) -> bool {
        stolen.add_unprotected(counter(operation), Party::Thief.amount());
        true
    }

    fn audit(&self, operation: Operation, board: &Board) {
        let counter = counter(operation);
        let mut copies = counter.per_id();
        for place in &board.copies[..COPIES] {
            place.store(copies.next().unwrap_or(0), SeqCst);
        }
        board.shared.store(counter.shared(), SeqCst);
    }
}

/// Returns the counter that an operation changes.
fn counter(operation: Operation) -> &'static Counter {
    match operation {
        Operation::Static => &STATIC,
        _ => REFERENCE.get().unwrap_or(&STATIC),
    }
}

/// Adds a constant to a `static` counter. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_static_add() {
    STATIC.add(STATIC_AMOUNT);
}

/// Adds a number to a counter, both unknown to the compiler. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_reference_add(counter: &Counter, n: i64) {
    counter.add(n);
}

/// Adds twice: the second increment finds registers as the first left them.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_twice_add(counter: &Counter, n: i64) {
    counter.add(n);
    counter.add(n);
}

/// Performs the handler's increment.
#[inline(never)]
fn handler_add(counter: &Counter) {
    counter.add(Party::Handler.amount());
}
