//! A set of IDs: a thread that finds an ID in it, or finds it removed, observes the work before
//! that.

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release},
};
use loom::thread;

use crate::explore;
use crate::set_words;

/// Explores another thread that works, stores that it has, and changes the set, while this one
/// reads the set.
fn change(before: u64, change: fn(&AtomicU64), after: u64) {
    let shared = Arc::new((AtomicU64::new(before), AtomicU64::new(0)));
    let theirs = Arc::clone(&shared);
    let other = thread::spawn(move || {
        theirs.1.store(1, Relaxed);
        change(&theirs.0);
    });
    let members = set_words::members(&shared.0);
    assert!(members == before || members == after);
    assert!(members == before || shared.1.load(Relaxed) == 1, "seen before the work");
    other.join().unwrap();
    assert_eq!(set_words::members(&shared.0), after);
}

#[test]
fn who_finds_a_member_sees_what_was_done_before() {
    explore::all("set, a member comes", || change(2, |word| set_words::insert(word, 1), 3));
}

#[test]
fn who_finds_it_gone_sees_what_was_done_before() {
    explore::all("set, a member goes", || change(3, |word| set_words::remove(word, 1), 2));
}

#[test]
fn a_member_stored_first_is_caught() {
    explore::expect_failure("set without release", || {
        change(
            2,
            |word| {
                word.fetch_or(1, Relaxed);
            },
            3,
        );
    });
}

/// Explores two threads with a block each for the first far ID; both insert one.
fn far(publish: fn(&AtomicUsize, usize) -> bool) {
    // Blocks 1 and 2, with what was left in them.
    let blocks = [(); 2].map(|()| AtomicU64::new(u64::MAX));
    let shared = Arc::new((AtomicUsize::new(0), blocks));
    let work = move |shared: &(AtomicUsize, [AtomicU64; 2]), mine: usize| {
        if set_words::published(&shared.0) == 0 {
            shared.1[mine - 1].store(0, Relaxed);
            publish(&shared.0, mine);
        }
        let word = &shared.1[set_words::published(&shared.0) - 1];
        assert_eq!(set_words::members(word) & !0b110, 0, "a member that never came");
        set_words::insert(word, 1 << mine);
    };
    let theirs = Arc::clone(&shared);
    let other = thread::spawn(move || work(&theirs, 1));
    work(&shared, 2);
    other.join().unwrap();
    let word = &shared.1[set_words::published(&shared.0) - 1];
    assert_eq!(set_words::members(word), 0b110, "a member is lost");
}

#[test]
fn a_block_is_found_empty_and_is_never_replaced() {
    explore::all("set, far members", || far(set_words::publish));
}

#[test]
fn a_block_that_is_replaced_is_caught() {
    explore::expect_failure("set, a replaced block", || {
        far(|far, block| {
            far.store(block, Release);
            true
        });
    });
}
