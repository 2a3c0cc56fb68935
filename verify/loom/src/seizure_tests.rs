//! Seizing without sections: the owner of a shard has it alone, and observes the effects of its
//! earlier owners. With sections it needs their fence; the library's tests explore that step by
//! step.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed},
};
use loom::thread;

use crate::explore;
use crate::seizure::{self, SEIZED, Verdict, Visit};

/// A shard: loom checks that what it holds is never used by two.
struct Shard {
    word: AtomicI64,
    items: UnsafeCell<i64>,
}

impl Shard {
    /// Makes a shard whose word and items are `value`.
    fn new(value: i64) -> Arc<Shard> {
        Arc::new(Shard { word: AtomicI64::new(value), items: UnsafeCell::new(value) })
    }

    fn change(&self, change: i64) {
        // SAFETY: that no other thread has the shard is what is checked.
        self.items.with_mut(|items| unsafe { *items += change });
    }

    /// Adds one item, as every user does; returns `true` if the shard was available.
    fn push(&self) -> bool {
        let value = self.word.load(Relaxed);
        if value < 1 {
            return false;
        }
        let Some(mut seized) = seizure::exchange(&self.word, value) else { return false };
        self.change(1);
        seized.value += 1;
        true
    }

    /// Removes all items, as a drain does; returns their number.
    fn drain(&self) -> i64 {
        let mut drained = 0;
        let judge = |value| match value {
            1.. => Verdict::Seize,
            0 => Verdict::Pass,
            _ => Verdict::Wait,
        };
        let mut visit = Visit::new(1, false);
        while let Some((_, mut seized)) = visit.next(|_| &self.word, judge) {
            drained = seized.value;
            self.change(-seized.value);
            seized.value = 0;
        }
        drained
    }

    /// Returns the number of items, after all users have ended.
    fn left(&self) -> i64 {
        // SAFETY: all users have ended.
        let items = self.items.with(|items| unsafe { *items });
        assert_eq!(items, self.word.load(Relaxed), "the word does not say what there is");
        items
    }
}

#[test]
fn two_users_have_a_shard_one_after_the_other() {
    explore::all("seizure, 2 users", || {
        let shard = Shard::new(1);
        let theirs = Arc::clone(&shard);
        let other = thread::spawn(move || i64::from(theirs.push()));
        let pushed = i64::from(shard.push()) + other.join().unwrap();
        assert_eq!(shard.left(), 1 + pushed);
    });
}

#[test]
fn a_drain_has_a_shard_alone_and_misses_nothing() {
    explore::bounded(3, "seizure, a user and a drain", || {
        let shard = Shard::new(1);
        let theirs = Arc::clone(&shard);
        let other = thread::spawn(move || i64::from(theirs.push()));
        let drained = shard.drain();
        let pushed = other.join().unwrap();
        assert_eq!(shard.left() + drained, 1 + pushed);
    });
}

/// The thread that activates a drained shard passes the effects of the drain on to the first user.
#[test]
fn an_activation_passes_on_what_was_there_before() {
    explore::bounded(3, "seizure, a drain, an activation and a user", || {
        let shard = Shard::new(1);
        let (drain, activation) = (Arc::clone(&shard), Arc::clone(&shard));
        let drain = thread::spawn(move || drain.drain());
        let activation = thread::spawn(move || {
            if seizure::claim(&activation.word, 0, SEIZED) {
                // Empty now: the word counts from one.
                activation.change(1);
                seizure::owned(&activation.word, 1).give_back_after(|| ());
            }
        });
        let pushed = i64::from(shard.push());
        let drained = drain.join().unwrap();
        activation.join().unwrap();
        let activated = i64::from(shard.word.load(Relaxed) > 0 && drained > 0);
        assert_eq!(shard.left() + drained, 1 + pushed + activated);
    });
}

/// A visitor that marks the shard and gives up, between two users: the second one sees what the
/// first one did.
#[test]
fn a_mark_that_is_taken_away_hides_nothing() {
    explore::all("seizure, a user, a mark that goes, and a user", || {
        let shard = Shard::new(1);
        let (first, visitor) = (Arc::clone(&shard), Arc::clone(&shard));
        let first = thread::spawn(move || i64::from(first.push()));
        let visitor = thread::spawn(move || {
            let word = |_| &visitor.word;
            let judge = |value| if value > 0 { Verdict::Seize } else { Verdict::Pass };
            crate::id::fence::refusing(|| {
                assert!(Visit::new(1, true).next(word, judge).is_none(), "without a fence");
            });
        });
        let pushed = i64::from(shard.push()) + first.join().unwrap();
        visitor.join().unwrap();
        assert_eq!(shard.left(), 1 + pushed);
    });
}

#[test]
fn who_finds_an_active_shard_sees_what_was_announced() {
    explore::all("seizure, an announcement", || {
        let shard = Arc::new((AtomicI64::new(SEIZED), AtomicI64::new(0)));
        let theirs = Arc::clone(&shard);
        let other = thread::spawn(move || {
            let announce = || theirs.1.store(1, Relaxed);
            seizure::owned(&theirs.0, 1).give_back_after(announce);
        });
        if shard.0.load(Acquire) == 1 {
            assert_eq!(shard.1.load(Relaxed), 1, "not announced");
        }
        other.join().unwrap();
    });
}

#[test]
fn owning_without_an_exchange_is_caught() {
    explore::expect_failure("seizure, no exchange", || {
        let shard = Shard::new(1);
        let theirs = Arc::clone(&shard);
        let other = thread::spawn(move || i64::from(theirs.push()));
        shard.word.store(1 | SEIZED, Relaxed);
        shard.change(-1);
        shard.word.store(0, Relaxed);
        other.join().unwrap();
        shard.left();
    });
}
