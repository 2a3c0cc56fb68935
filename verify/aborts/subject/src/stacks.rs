//! The operations of percid's stacks.

use percid::Stack;
use percid::testing::{self, Stolen};
use percid_subject::board::{Answer, Board, COPIES};
use percid_subject::{Fault, Operation, Party};

use crate::findings;
use crate::ledger::{Item, LEDGER};
use crate::structure::Structure;

/// The items of a CPU's part; a batch is half of it.
const CAPACITY: u32 = 8;

/// Number of items in the shared list before a pop, so that it finds one on any CPU: more than one
/// chunk, since an interrupted pop may hold one.
const SHARED: usize = 40;

static STACK: Stack<u64> = Stack::new(CAPACITY);

pub(crate) struct Stacks;

impl Structure for Stacks {
    fn prepare(&self, operation: Operation, _: &Board) {
        // A preemption between two pushes can give the thread another ID: then once more.
        for _ in 0..10 {
            STACK.drain(|_| ());
            LEDGER.begin();
            stock(operation);
            if is_ready(self.current_id(), operation) {
                break;
            }
        }
        locate();
    }

    fn perform(&self, operation: Operation, _: i64) {
        act(operation, Party::Own);
    }

    fn interrupt(&self, operation: Operation) {
        act(operation, Party::Handler);
    }

    fn visit(&self, _: Operation) -> Answer {
        let ids = 0..COPIES as u32;
        let active = ids.filter(|&id| testing::items_of_id(&STACK, id).is_some()).count();
        let mut items = Vec::new();
        STACK.drain(|word| items.push(item(word)));
        for item in items {
            LEDGER.take(item, Party::Stock);
            LEDGER.give_back(item);
            share(item);
        }
        if active > 0 { Answer::Felt } else { Answer::Unfelt }
    }

    fn rob(&self, operation: Operation, stolen: &Stolen) -> bool {
        if pops(operation) {
            let popped = stolen.pop_unprotected(&STACK).map(item);
            popped.map(|item| LEDGER.take(item, Party::Thief)).is_some()
        } else {
            let item = LEDGER.issue(Party::Thief, 0);
            let pushed = stolen.push_unprotected(&STACK, item.0.into()).is_ok();
            if !pushed {
                LEDGER.refuse(item);
            }
            pushed
        }
    }

    fn audit(&self, _: Operation, board: &Board) {
        locate();
        STACK.drain(|word| LEDGER.find(item(word)));
        let (missing, _) = LEDGER.close();
        (0..missing).for_each(|_| findings::fault(Fault::Lost));
        findings::publish(board);
    }
}

fn pops(operation: Operation) -> bool {
    matches!(operation, Operation::Pop | Operation::PopEmpty | Operation::PopFirst)
}

/// Pushes or pops for one of the parties.
fn act(operation: Operation, party: Party) {
    if pops(operation) {
        if let Some(word) = percid_stack_pop(&STACK) {
            LEDGER.take(item(word), party);
        }
    } else {
        push(party);
    }
}

fn push(party: Party) {
    let item = LEDGER.issue(party, 0);
    if percid_stack_push(&STACK, item.0.into()).is_err() {
        LEDGER.refuse(item);
    }
}

fn share(item: Item) {
    if testing::push_shared(&STACK, item.0.into()).is_err() {
        LEDGER.refuse(item);
    }
}

fn item(word: u64) -> Item {
    Item(u32::try_from(word).unwrap_or(0))
}

/// Returns the number of items in the CPU's part when the operation begins; `None` if it is
/// inactive.
fn wanted(operation: Operation) -> Option<usize> {
    match operation {
        Operation::PushFull => Some(CAPACITY as usize),
        Operation::PopEmpty => Some(0),
        Operation::PushFirst | Operation::PopFirst => None,
        _ => Some(3),
    }
}

/// Fills an empty stack.
fn stock(operation: Operation) {
    if let Some(items) = wanted(operation) {
        // Pushed and popped, so that the part is active even if nothing stays in it.
        push(Party::Stock);
        act(Operation::Pop, Party::Stock);
        (0..items).for_each(|_| push(Party::Stock));
    }
    if pops(operation) {
        (0..SHARED).for_each(|_| share(LEDGER.issue(Party::Stock, 0)));
    }
}

fn is_ready(id: Option<u32>, operation: Operation) -> bool {
    let items = id.and_then(|id| testing::items_of_id(&STACK, id));
    items.map(|items| items.len()) == wanted(operation)
}

/// Notes in whose copy each item lies.
fn locate() {
    for id in 0..COPIES as u32 {
        let items = testing::items_of_id(&STACK, id).into_iter().flatten();
        items.for_each(|word| LEDGER.locate(item(word), id));
    }
}

/// Pushes an item. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_stack_push(stack: &Stack<u64>, item: u64) -> Result<(), u64> {
    stack.push(item)
}

/// Pops an item. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_stack_pop(stack: &Stack<u64>) -> Option<u64> {
    stack.pop()
}
