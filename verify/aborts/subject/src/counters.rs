//! The operations of percid.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;

use percid::{Counter, Source};
use percid_subject::board::{Board, COPIES};
use percid_subject::{HANDLER_AMOUNT, Operation, STATIC_AMOUNT};

static STATIC: Counter = Counter::new();
static REFERENCE: OnceLock<Counter> = OnceLock::new();

/// Makes the counters ready, so that no operation is a first use: their first uses, one per operation,
/// would take another way.
pub(crate) fn prepare() {
    let source = percid::init().source;
    if let Ok(counter) = Counter::with_source(source) {
        REFERENCE.get_or_init(|| counter);
    }
    for operation in Operation::PERCID {
        of(operation)(0);
    }
}

/// The counter that an operation changes.
pub(crate) fn counter(operation: Operation) -> &'static Counter {
    match operation {
        Operation::Static => &STATIC,
        _ => REFERENCE.get().unwrap_or(&STATIC),
    }
}

/// The function of an operation of percid.
pub(crate) fn of(operation: Operation) -> fn(i64) {
    match operation {
        Operation::Static => |_| percid_static_add(),
        Operation::Reference => |n| percid_reference_add(counter(Operation::Reference), n),
        Operation::Twice => |n| percid_twice_add(counter(Operation::Twice), n),
        _ => |_| handler_add(counter(Operation::Handler)),
    }
}

/// Golden disassembly: a `static` counter and a constant.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_static_add() {
    STATIC.add(STATIC_AMOUNT);
}

/// Golden disassembly: nothing is known about the counter or the number.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_reference_add(counter: &Counter, n: i64) {
    counter.add(n);
}

/// The second increment finds registers as the first left them.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_twice_add(counter: &Counter, n: i64) {
    counter.add(n);
    counter.add(n);
}

/// The handler's increment: a section of its own, since the interrupted one may hold a trap.
#[inline(never)]
pub(crate) fn handler_add(counter: &Counter) {
    counter.add(HANDLER_AMOUNT);
}

pub(crate) fn publish(operation: Operation, board: &Board) {
    let counter = counter(operation);
    let source: Source = percid::init().source;
    let mut copies = counter.by_id();
    for place in &board.copies[..COPIES] {
        place.store(copies.next().unwrap_or(0), SeqCst);
    }
    board.shared.store(counter.shared(), SeqCst);
    board.current_id.store(source.current_id().map_or(-1, |id| id as i32), SeqCst);
}
