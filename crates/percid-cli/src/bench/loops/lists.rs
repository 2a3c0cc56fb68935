//! Lists of words: one pushed, and one popped again.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "peers")]
use crossbeam_queue::ArrayQueue;
use percid::Stack;

use super::form::{observe, repeat};
use super::operation::{Account, Family, Measured, Operation};

const FAMILY: Family = Family::ListsAndPools;
/// Capacity in words of bounded lists, in percid's per ID. At most one word accumulates for each
/// thread that was interrupted between its push and its pop.
const CAPACITY: u32 = 1024;

pub(super) fn operations() -> impl Iterator<Item = Operation> {
    let others = [
        Operation::other(FAMILY, "thread_local_vec", PushPop::on(ThreadLocalVec)),
        Operation::other(FAMILY, "mutex_vec", PushPop::on(Mutex::new(Vec::new()))),
        #[cfg(feature = "peers")]
        Operation::other(FAMILY, "array_queue", PushPop::on(ArrayQueue::new(CAPACITY as usize))),
    ];
    others.into_iter().chain(Operation::per_source(FAMILY, "stack_push_pop", |source| {
        Stack::with_source(source, CAPACITY).map(PushPop::on)
    }))
}

/// A list in the loop.
trait List: Sync {
    /// Adds a word. Returns `false` if the list is full.
    fn push(&self, word: u64) -> bool;

    fn pop(&self) -> Option<u64>;

    /// Removes all words, and returns their number.
    fn drain(&self) -> u64 {
        std::iter::from_fn(|| self.pop()).count() as u64
    }

    /// Removes the words that no other thread can access, and returns their number.
    fn drain_own(&self) -> u64 {
        0
    }
}

impl List for Mutex<Vec<u64>> {
    #[inline(always)]
    fn push(&self, word: u64) -> bool {
        self.lock().expect("no thread panics with it").push(word);
        true
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        self.lock().expect("no thread panics with it").pop()
    }
}

#[cfg(feature = "peers")]
impl List for ArrayQueue<u64> {
    #[inline(always)]
    fn push(&self, word: u64) -> bool {
        ArrayQueue::push(self, word).is_ok()
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        ArrayQueue::pop(self)
    }
}

impl List for Stack<u64> {
    #[inline(always)]
    fn push(&self, word: u64) -> bool {
        Stack::push(self, word).is_ok()
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        Stack::pop(self)
    }

    fn drain(&self) -> u64 {
        Stack::drain(self, |_| ()) as u64
    }
}

/// One list per thread.
struct ThreadLocalVec;

thread_local! {
    static WORDS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl List for ThreadLocalVec {
    #[inline(always)]
    fn push(&self, word: u64) -> bool {
        WORDS.with_borrow_mut(|words| words.push(word));
        true
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        WORDS.with_borrow_mut(Vec::pop)
    }

    fn drain(&self) -> u64 {
        0
    }

    fn drain_own(&self) -> u64 {
        WORDS.with_borrow_mut(|words| words.drain(..).count()) as u64
    }
}

/// A push and a pop, and the numbers of those that failed.
struct PushPop<L> {
    list: L,
    refused: AtomicU64,
    empty: AtomicU64,
    drained: AtomicU64,
}

impl<L: List> PushPop<L> {
    fn on(list: L) -> Self {
        let [refused, empty, drained] = [const { AtomicU64::new(0) }; 3];
        PushPop { list, refused, empty, drained }
    }
}

impl<L: List> Measured for PushPop<L> {
    fn repeat(&self, times: u64, _: usize) {
        let misses = push_pop(&self.list, times);
        self.refused.fetch_add(misses.refused, Ordering::Relaxed);
        self.empty.fetch_add(misses.empty, Ordering::Relaxed);
        self.drained.fetch_add(self.list.drain_own(), Ordering::Relaxed);
    }

    /// Compares the pushed words with the popped and the remaining ones.
    fn account(&self, done: u64) -> Option<Account> {
        let pushed = done - self.refused.load(Ordering::Relaxed);
        let popped = done - self.empty.load(Ordering::Relaxed);
        let left = self.drained.load(Ordering::Relaxed) + self.list.drain();
        Some(Account { added: pushed as i64, sum: (popped + left) as i64 })
    }
}

/// Failed operations: pushes to a full list and pops from an empty one. A thread that migrates
/// between the two may cause either.
#[derive(Default)]
struct Misses {
    refused: u64,
    empty: u64,
}

#[inline(never)]
fn push_pop<L: List>(list: &L, times: u64) -> Misses {
    let mut misses = Misses::default();
    repeat(times, |word| {
        if !list.push(word) {
            misses.refused += 1;
        }
        observe(word);
        match list.pop() {
            Some(word) => observe(word),
            None => misses.empty += 1,
        }
    });
    misses
}
