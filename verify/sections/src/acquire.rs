//! `acquire`, in Rust and as C programs have it inline.

use crate::critical::by_mark;
use crate::exhaust;
use crate::operation::{Operation, noise};
use crate::stepping;
use crate::sys::thread;
use crate::world::{HERE, Shard, Source, World};

const EXPECTED: usize = 0x51;
const TOKEN: usize = 0x7000;

/// From the state to the word that closes the shard, as locals have it; and as stacks have it,
/// which have no such word and expect zero.
const BESIDE: isize = 8;
const SAME: isize = 0;

pub(crate) struct Acquire<const CLOSED: isize> {
    expected: usize,
    state: u64,
    closed: u64,
}

impl<const CLOSED: isize> Operation for Acquire<CLOSED> {
    fn call(&self, word: usize) -> Option<u64> {
        // SAFETY: the word is one of the test's world, which has set all that sections read.
        let shard = unsafe { by_mark!(word, acquire::<CLOSED>(self.expected, TOKEN), else 0) };
        (shard != 0).then_some(shard as u64)
    }

    fn shard(&self, slot: usize) -> Shard {
        let mut shard = noise(slot);
        shard[CLOSED as usize / 8] = self.closed;
        shard[0] = self.state;
        shard
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        let free = shard[0] == self.expected as u64 && shard[CLOSED as usize / 8] == 0;
        if free {
            shard[0] = TOKEN as u64;
        }
        free.then_some(0)
    }

    fn result_in(&self, result: Option<u64>, address: usize) -> Option<u64> {
        result.map(|_| address as u64)
    }
}

pub(crate) const FREE: Acquire<BESIDE> =
    Acquire { expected: EXPECTED, state: EXPECTED as u64, closed: 0 };

/// Tests a value that is free.
pub fn acquire() {
    let mut runs = exhaust::all(&FREE);
    runs += exhaust::all(&Acquire::<SAME> { expected: 0, state: 0, closed: 0 });
    println!("{runs} runs");
}

/// Tests a value that is not available.
pub fn acquire_what_is_closed_or_taken() {
    exhaust::all(&Acquire::<BESIDE> { closed: 1, ..FREE });
    exhaust::briefly(&Acquire::<BESIDE> { closed: 1 << 40, ..FREE });
    exhaust::briefly(&Acquire::<BESIDE> { state: TOKEN as u64 + 8, ..FREE });
    exhaust::briefly(&Acquire::<BESIDE> { state: 0, ..FREE });
    exhaust::briefly(&Acquire::<SAME> { expected: 0, state: 1, closed: 1 });
}

unsafe extern "C" {
    fn percid_inline_lock(word: u64) -> *mut i64;
}

/// C's inline section: it expects the lock of a local without an owner, and stores the thread
/// pointer.
struct Lock {
    state: u64,
    closed: u64,
}

impl Operation for Lock {
    fn call(&self, word: usize) -> Option<u64> {
        // SAFETY: the word is one of the test's world, which has set all that sections read.
        let lock = unsafe { percid_inline_lock(word as u64) };
        (!lock.is_null()).then_some(lock.addr() as u64)
    }

    fn shard(&self, slot: usize) -> Shard {
        let mut shard = noise(slot);
        shard[BESIDE as usize / 8] = self.closed;
        shard[0] = self.state;
        shard
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        let free = shard[0] == 1 && shard[BESIDE as usize / 8] == 0;
        if free {
            shard[0] = thread::pointer() as u64;
        }
        free.then_some(0)
    }

    fn result_in(&self, result: Option<u64>, address: usize) -> Option<u64> {
        result.map(|_| address as u64)
    }
}

/// Tests a value that is free, and one that is not available.
pub fn acquire_in_c() {
    let runs = exhaust::all(&Lock { state: 1, closed: 0 });
    exhaust::all(&Lock { state: 1, closed: 1 });
    exhaust::briefly(&Lock { state: 1, closed: 1 << 40 });
    exhaust::briefly(&Lock { state: TOKEN as u64, closed: 0 });
    exhaust::briefly(&Lock { state: 0, closed: 0 });
    println!("{runs} runs");
}

/// Tests a visitor that takes the value out of a shard that it has closed, stores that there is
/// none, and opens the shard again, all between two instructions of a section on another CPU. The
/// section must not rely on the state before: if it finds the shard open, it must still read its
/// state.
pub fn acquire_after_the_shard_was_closed() {
    for source in [Source::Kernel, Source::Table] {
        let world = World::new();
        // Called through a table, so that there is one copy of the section.
        let closed: &dyn Operation = &Acquire::<BESIDE> { closed: 1, ..FREE };
        let closed = std::hint::black_box(closed);
        let section = exhaust::section_of(closed, &world, source);
        let (mut number, mut reached) = (0, true);
        while reached {
            for slot in 0..world.read().len() {
                world.write(slot, &closed.shard(slot));
            }
            world.put(HERE, source);
            let mut taken = None;
            reached = stepping::run(
                section,
                &mut || taken = closed.call(world.word(source)),
                number,
                &mut |_| {
                    world.store(HERE.slot, 0, 0);
                    world.store(HERE.slot, BESIDE as usize / 8, 0);
                },
            );
            assert_eq!(taken, None, "{source:?}: opened in front of instruction {number}");
            number += 1;
        }
        assert!(number > 8, "{number} instructions");
    }
}
