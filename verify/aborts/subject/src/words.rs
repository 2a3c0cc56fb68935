//! The operations of values of the subject's own type.

use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

use percid::per_id::{Field, Pointer, Word};
use percid::testing::Stolen;
use percid::{PerId, field};
use percid_subject::board::{Answer, Board, COPIES};
use percid_subject::{Fault, Operation, Party};

use crate::findings;
use crate::ledger::{Item, LEDGER};
use crate::structure::Structure;

struct Node {
    next: Pointer<Node>,
}

type List = Pointer<Node>;

const NEXT: Field<Node, List> = field!(Node, next);

static WORDS: PerId<Word> = PerId::new(WORD);
static LISTS: PerId<List> = PerId::new(List::null);

/// One node for each item of a round.
static NODES: [Node; 256] = [const { Node { next: Pointer::null() } }; 256];

/// The item of each node.
static ITEMS: [Word; 256] = [const { Word::new(0) }; 256];

/// The items that a visitor has taken out.
static TAKEN: Mutex<Vec<Item>> = Mutex::new(Vec::new());

/// The object of the present round, if its values are to be made: a new one in each round.
static FRESH: AtomicPtr<PerId<Word>> = AtomicPtr::new(ptr::null_mut());

/// Numbers.
pub(crate) struct Numbers;

impl Structure for Numbers {
    /// Makes the value of this ID, since a first use takes another path; or the object, if it is
    /// that path which is wanted.
    fn prepare(&self, operation: Operation, _: &Board) {
        if operation == Operation::WordAdd {
            return percid_word_add(&WORDS, 0);
        }
        let source = percid::init().source;
        let object = PerId::with_source(source, WORD).ok().map_or(ptr::null_mut(), leak);
        let before = FRESH.swap(object, SeqCst);
        if !before.is_null() {
            // SAFETY: the object of the last round was leaked, and no thread uses it any more.
            drop(unsafe { Box::from_raw(before) });
        }
    }

    fn perform(&self, operation: Operation, amount: i64) {
        percid_word_add(words(operation), amount);
    }

    fn interrupt(&self, operation: Operation) {
        percid_word_add(words(operation), Party::Handler.amount());
    }

    fn rob(&self, operation: Operation, stolen: &Stolen) -> bool {
        let Some(word) = words(operation).get(stolen.id()) else { return false };
        word.store(word.load().wrapping_add(Party::Thief.amount()));
        true
    }

    /// Takes the amounts out, so that each is counted once.
    fn audit(&self, operation: Operation, board: &Board) {
        for word in words(operation).visit() {
            findings::took_place(word.id(), word.load());
            word.store(0);
        }
        findings::publish(board);
    }
}

const WORD: fn() -> Word = || Word::new(0);

fn leak(object: PerId<Word>) -> *mut PerId<Word> {
    Box::into_raw(Box::new(object))
}

/// Returns the object of an operation.
fn words(operation: Operation) -> &'static PerId<Word> {
    // SAFETY: the object of a round stays until the next one begins.
    let fresh = unsafe { FRESH.load(SeqCst).as_ref() };
    fresh.filter(|_| operation == Operation::WordFirst).unwrap_or(&WORDS)
}

/// Lists of nodes.
pub(crate) struct Nodes;

impl Structure for Nodes {
    fn prepare(&self, operation: Operation, _: &Board) {
        // A preemption between two pushes can give the thread another ID: then once more.
        for _ in 0..10 {
            LISTS.visit().for_each(|list| list.store(ptr::null_mut()));
            taken().clear();
            LEDGER.begin();
            // Pushed and popped, so that the value is made even if nothing stays in it.
            push(Party::Stock);
            act(Operation::LinkPop, Party::Stock);
            (0..wanted(operation)).for_each(|_| push(Party::Stock));
            let mine = self.current_id().and_then(|id| LISTS.get(id));
            if mine.is_some_and(|list| items(list).count() == wanted(operation)) {
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
        let mut answer = Answer::Unfelt;
        for list in LISTS.visit() {
            answer = Answer::Felt;
            let found: Vec<Item> = items(&list).collect();
            list.store(ptr::null_mut());
            for item in found {
                LEDGER.take(item, Party::Stock);
                LEDGER.give_back(item);
                taken().push(item);
            }
        }
        answer
    }

    fn rob(&self, operation: Operation, stolen: &Stolen) -> bool {
        let Some(list) = LISTS.get(stolen.id()) else { return false };
        if operation == Operation::LinkPush {
            let item = issue(Party::Thief);
            let node = node_of(item);
            node.next.store(list.load());
            list.store(ptr::from_ref(node).cast_mut());
            return true;
        }
        let first = items(list).next();
        let Some(item) = first else { return false };
        list.store(node_of(item).next.load());
        LEDGER.take(item, Party::Thief);
        true
    }

    fn audit(&self, _: Operation, board: &Board) {
        locate();
        for list in LISTS.visit() {
            items(&list).for_each(|item| LEDGER.find(item));
            list.store(ptr::null_mut());
        }
        taken().drain(..).for_each(|item| LEDGER.find(item));
        let (missing, _) = LEDGER.close();
        (0..missing).for_each(|_| findings::fault(Fault::Lost));
        findings::publish(board);
    }
}

/// Returns the number of items in the CPU's list when the operation begins.
fn wanted(operation: Operation) -> usize {
    if operation == Operation::LinkPopEmpty { 0 } else { 3 }
}

fn taken() -> std::sync::MutexGuard<'static, Vec<Item>> {
    TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn number(item: Item) -> usize {
    item.0 as usize & 0xff
}

fn node_of(item: Item) -> &'static Node {
    &NODES[number(item)]
}

/// Returns the items of a list, at most as many as there are: a damaged list may have a circle.
fn items(list: &List) -> impl Iterator<Item = Item> {
    let mut next = list.load().addr();
    let start = ptr::from_ref(&NODES).addr();
    let item = move || {
        let index = next.checked_sub(start)? / size_of::<Node>();
        next = NODES.get(index)?.next.load().addr();
        Some(Item(ITEMS[index].load() as u32))
    };
    std::iter::from_fn(item).take(NODES.len())
}

/// Pushes or pops for one of the parties.
fn act(operation: Operation, party: Party) {
    if operation == Operation::LinkPush {
        return push(party);
    }
    let popped = percid_link_pop(&LISTS).map(|node| {
        let index = (node.addr().get() - ptr::from_ref(&NODES).addr()) / size_of::<Node>();
        Item(ITEMS[index].load() as u32)
    });
    // There is no list of all threads, so another CPU's may be empty.
    LEDGER.take(popped.unwrap_or_else(|| LEDGER.issue(Party::Stock, 0)), party);
}

/// Issues an item with a node.
fn issue(party: Party) -> Item {
    let item = LEDGER.issue(party, 0);
    ITEMS[number(item)].store(item.0.into());
    item
}

fn push(party: Party) {
    let item = issue(party);
    if !percid_link_push(&LISTS, NonNull::from(node_of(item))) {
        LEDGER.refuse(item);
    }
}

/// Notes in whose value each item lies.
fn locate() {
    for id in 0..COPIES as u32 {
        let list = LISTS.get(id).into_iter();
        list.flat_map(items).for_each(|item| LEDGER.locate(item, id));
    }
}

/// Adds a number. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_word_add(words: &PerId<Word>, n: i64) {
    let _ = words.add(Field::whole(), n);
}

/// Pushes a node. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_link_push(lists: &PerId<List>, node: NonNull<Node>) -> bool {
    // SAFETY: a static node that is in no list; all use this field.
    unsafe { lists.push(Field::whole(), node, NEXT) }.is_ok()
}

/// Pops a node. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_link_pop(lists: &PerId<List>) -> Option<NonNull<Node>> {
    // SAFETY: all nodes were pushed with this field.
    unsafe { lists.pop(Field::whole(), NEXT) }.ok().flatten()
}
