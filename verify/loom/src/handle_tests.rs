//! The word of a handle: one block and one source, which no thread observes before they are ready.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::arena::Block;
use crate::explore;
use crate::handle_word::{State, Word};
use crate::id::Source;

struct Object {
    word: Word,
    /// Number of blocks claimed, and number given back.
    claimed: AtomicUsize,
    given_back: AtomicUsize,
    /// The value that the sections of the source read: written before anything is marked.
    prepared: AtomicUsize,
}

impl Object {
    fn new() -> Arc<Object> {
        Arc::new(Object {
            word: Word { value: AtomicU64::new(0) },
            claimed: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
            prepared: AtomicUsize::new(0),
        })
    }

    fn settle(&self) -> Block {
        let claim = || Some(Block(64 * (1 + self.claimed.fetch_add(1, Relaxed))));
        let choose = || {
            self.prepared.store(1, Relaxed);
            Some(Source::Table)
        };
        self.word.settle(claim, |_| _ = self.given_back.fetch_add(1, Relaxed), choose, || false);
        self.check().expect("settled")
    }

    /// Checks that a thread that observes a mark also observes the value that the sections read.
    fn check(&self) -> Option<Block> {
        let State::Claimed(block, Some(Source::Table)) = self.word.state() else { return None };
        assert_eq!(self.prepared.load(Relaxed), 1, "marked before it is ready");
        Some(block)
    }
}

#[test]
fn two_first_uses_share_one_block_and_give_the_other_back() {
    explore::all("handle, 2 threads, first use", || {
        let object = Object::new();
        let theirs = Arc::clone(&object);
        let other = thread::spawn(move || theirs.settle());
        assert_eq!(object.settle(), other.join().unwrap());
        assert_eq!(object.claimed.load(Relaxed) - object.given_back.load(Relaxed), 1);
    });
}

#[test]
fn who_sees_the_mark_sees_what_the_sections_read() {
    explore::all("handle, 2 threads, first use and look", || {
        let object = Object::new();
        let theirs = Arc::clone(&object);
        let other = thread::spawn(move || theirs.settle());
        object.check();
        other.join().unwrap();
        assert!(object.check().is_some());
    });
}

#[test]
fn without_memory_every_thread_counts_in_the_word() {
    explore::all("handle, 2 threads, no memory", || {
        let object = Object::new();
        let count = |object: &Object, n| {
            object.word.settle(|| None, |_| unreachable!("there is no block"), || None, || false);
            object.word.count_inline(n);
        };
        let theirs = Arc::clone(&object);
        let other = thread::spawn(move || count(&theirs, 1));
        count(&object, 10);
        other.join().unwrap();
        assert!(matches!(object.word.state(), State::Inline(11)));
    });
}

#[test]
fn a_relaxed_mark_is_caught() {
    explore::expect_failure("handle, a mark without release", || {
        let object = Object::new();
        let theirs = Arc::clone(&object);
        let other = thread::spawn(move || {
            theirs.prepared.store(1, Relaxed);
            let marked = State::Claimed(Block(64), Some(Source::Table)).encode();
            theirs.word.value.store(marked, Relaxed);
        });
        object.check();
        other.join().unwrap();
    });
}
