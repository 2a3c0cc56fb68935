//! The operations on words of callers' own types.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::critical::words::{CopyRequest, NOT_DONE, Outcome, READY, word_section};
use crate::exhaust;
use crate::operation::{Operation, noise};
use crate::world::Shard;

/// The words of a shard: the field of the operation, the other field, and the destination of
/// copies.
const FIELD: usize = 3;
const OTHER: usize = 5;
const TEXT: usize = 8;

const EXPECTED: u64 = 0x51;
const BESIDE: u64 = 0x52;
const NEW: u64 = 0x7001;

const BYTES: [u8; 21] = *b"21 bytes, not aligned";

/// A node of the lists: the word in front is no link.
struct Node([AtomicU64; 2]);

/// Offset from a node to its link, in bytes.
const LINK: usize = 8;

static PUSHED: Node = Node([AtomicU64::new(1), AtomicU64::new(2)]);
static FIRST: Node = Node([AtomicU64::new(3), AtomicU64::new(0)]);
static SECOND: Node = Node([AtomicU64::new(4), AtomicU64::new(0)]);

impl Node {
    fn address(&'static self) -> u64 {
        std::ptr::from_ref(self).expose_provenance() as u64
    }

    fn link(&self) -> &AtomicU64 {
        &self.0[1]
    }
}

/// Returns the link of the node at an address.
fn link_of(address: u64) -> u64 {
    let nodes = [&PUSHED, &FIRST, &SECOND];
    let node = nodes.into_iter().find(|node| node.address() == address).expect("a node");
    node.link().load(Relaxed)
}

#[derive(Debug, Clone, Copy)]
enum What {
    Add(i64),
    Swap,
    StoreIf,
    StoreBothIf,
    StoreIfBoth,
    /// Copies so many bytes to this byte of the text.
    Copy(usize, usize),
    Push,
    Pop,
}

/// An operation on shards with this state, and with these values in both fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    what: What,
    state: u64,
    field: u64,
    other: u64,
}

impl Words {
    const fn ready(what: What) -> Words {
        Words { what, state: READY as u64, field: EXPECTED, other: BESIDE }
    }
}

/// The ones that the orders are read off.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const PUBLISHING: [Words; 7] = [
    Words::ready(What::Swap),
    Words::ready(What::StoreIf),
    Words::ready(What::StoreBothIf),
    Words::ready(What::StoreIfBoth),
    Words::ready(What::Copy(0, 21)),
    Words::ready(What::Push),
    Words { field: 0, ..Words::ready(What::Pop) },
];

/// A result as one number, without the address of the shard.
fn result(seen: u64, other: u64) -> u64 {
    seen.wrapping_mul(3).wrapping_add(other)
}

impl Operation for Words {
    fn call(&self, word: usize) -> Option<u64> {
        let (at, beside) = (8 * FIELD, 8 * OTHER);
        let request =
            |start, length| CopyRequest::new(&BYTES[..length], 8 * TEXT + start, EXPECTED, NEW);
        let push = (PUSHED.address(), PUSHED.address() as usize + LINK);
        // SAFETY: the word is one of the test's world, which has set all that sections read; fields
        // and bytes lie in the shard, and a list has nodes of the test.
        let done: Outcome = unsafe {
            match self.what {
                What::Add(n) => word_section!(word, add_word(at, n), else NOT_DONE),
                What::Swap => word_section!(word, swap(at, NEW), else NOT_DONE),
                What::StoreIf => word_section!(word, store_if(at, EXPECTED, NEW), else NOT_DONE),
                What::StoreBothIf => {
                    word_section!(word, store_both_if(at, EXPECTED, (beside, 9), NEW), else NOT_DONE)
                }
                What::StoreIfBoth => {
                    word_section!(word, store_if_both(at, EXPECTED, (beside, BESIDE), NEW), else NOT_DONE)
                }
                What::Copy(start, length) => {
                    word_section!(word, copy_then_store_if(at, &request(start, length)), else NOT_DONE)
                }
                What::Push => word_section!(word, push_link(at, push.0, push.1), else NOT_DONE),
                What::Pop => word_section!(word, pop_link(at, LINK), else NOT_DONE),
            }
        };
        let (seen, other) = match self.what {
            What::StoreIfBoth => (done.seen, done.other),
            _ => (done.seen, 0),
        };
        (done.shard != 0).then(|| result(seen, other).wrapping_add(done.shard as u64 & !7))
    }

    fn shard(&self, slot: usize) -> Shard {
        FIRST.link().store(SECOND.address(), Relaxed);
        let mut shard = noise(slot);
        (shard[0], shard[FIELD], shard[OTHER]) = (self.state, self.field, self.other);
        shard
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        if shard[0] != READY as u64 {
            return None;
        }
        let (seen, other) = (shard[FIELD], shard[OTHER]);
        let matches = seen == EXPECTED;
        match self.what {
            What::Add(n) => shard[FIELD] = seen.wrapping_add_signed(n),
            What::Swap => shard[FIELD] = NEW,
            What::StoreIf if matches => shard[FIELD] = NEW,
            What::StoreBothIf if matches => (shard[OTHER], shard[FIELD]) = (9, NEW),
            What::StoreIfBoth if matches && other == BESIDE => shard[FIELD] = NEW,
            What::Copy(start, length) if matches => {
                copy(&BYTES[..length], start, shard);
                shard[FIELD] = NEW;
            }
            What::Push => shard[FIELD] = PUSHED.address(),
            What::Pop if seen != 0 => shard[FIELD] = link_of(seen),
            _ => {}
        }
        Some(match self.what {
            What::Add(_) => result(shard[FIELD], 0),
            What::StoreIfBoth => result(seen, other),
            _ => result(seen, 0),
        })
    }

    /// Clears what is stored before the commit, until that.
    fn forget_free_parts(&self, shard: &mut Shard) {
        if shard[FIELD] == NEW {
            return;
        }
        match self.what {
            What::StoreBothIf => shard[OTHER] = 0,
            What::Copy(..) => shard[TEXT..TEXT + 4].fill(0),
            _ => {}
        }
    }

    fn result_in(&self, result: Option<u64>, address: usize) -> Option<u64> {
        result.map(|result| result.wrapping_add(address as u64))
    }
}

fn copy(bytes: &[u8], start: usize, shard: &mut Shard) {
    for (index, &byte) in bytes.iter().enumerate() {
        let (word, shift) = (TEXT + (start + index) / 8, 8 * ((start + index) % 8));
        shard[word] = shard[word] & !(0xff << shift) | u64::from(byte) << shift;
    }
}

/// Tests an operation that is done, and with shards that are not ready.
fn test(operation: Words) -> usize {
    for state in [0, 2, 0x7000, (-0x7000_i64) as u64] {
        exhaust::briefly(&Words { state, ..operation });
    }
    exhaust::all(&operation) + exhaust::all(&Words { state: 0x7000, ..operation })
}

/// Tests an operation that compares, and one whose comparison fails.
fn test_comparing(what: What) {
    let runs = test(Words::ready(what));
    let failed = exhaust::all(&Words { field: EXPECTED + 1, ..Words::ready(what) });
    println!("{runs} runs, {failed} whose comparison fails");
}

/// Tests `add_word`.
pub fn words_are_added_to() {
    let runs = test(Words::ready(What::Add(77)));
    [1, -3, 1 << 40].into_iter().for_each(|n| exhaust::briefly(&Words::ready(What::Add(n))));
    println!("{runs} runs");
}

/// Tests `swap`.
pub fn words_are_swapped() {
    println!("{} runs", test(Words::ready(What::Swap)));
}

/// Tests `store_if`.
pub fn store_if_equal() {
    test_comparing(What::StoreIf);
}

/// Tests `store_both_if`.
pub fn store_both_if_equal() {
    test_comparing(What::StoreBothIf);
}

/// Tests `store_if_both`, and with either comparison failing.
pub fn store_if_both_are_equal() {
    test_comparing(What::StoreIfBoth);
    exhaust::all(&Words { other: BESIDE + 1, ..Words::ready(What::StoreIfBoth) });
}

/// Tests `copy_then_store_if`, and copies of any length to any byte.
pub fn copy_then_store_if_equal() {
    test_comparing(What::Copy(0, 21));
    for (start, length) in [(0, 0), (0, 1), (0, 8), (3, 7), (1, 16), (8, 15), (11, 21)] {
        exhaust::briefly(&Words::ready(What::Copy(start, length)));
    }
}

/// Tests `push_link`, and the link that it stores in the item.
pub fn items_are_pushed() {
    println!("{} runs", test(Words::ready(What::Push)));
    for field in [0, EXPECTED, FIRST.address()] {
        exhaust::briefly(&Words { field, ..Words::ready(What::Push) });
        assert_eq!(link_of(PUSHED.address()), field, "the item leads to the former first one");
    }
}

/// Tests `pop_link`, with one item, two and none.
pub fn items_are_popped() {
    let of = |field| Words { field, ..Words::ready(What::Pop) };
    println!("{} runs", test(of(FIRST.address())));
    exhaust::all(&of(SECOND.address()));
    exhaust::all(&of(0));
}
