//! Step-by-step tests of seizing: the state at the time of the fence, and the reaction to its
//! refusal.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::seizure::*;
use crate::sys::atomic::{AtomicI64, Ordering::Relaxed};
use crate::sys::steps::{self, Fence, Step};

/// The words of three shards, which exist forever.
fn words(values: [i64; 3]) -> &'static [AtomicI64; 3] {
    Box::leak(Box::new(values.map(AtomicI64::new)))
}

fn values(words: &[AtomicI64; 3]) -> [i64; 3] {
    words.each_ref().map(|word| word.load(Relaxed))
}

/// Seizes positive words and waits for negative ones.
fn judge(value: i64) -> Verdict {
    match value {
        1.. => Verdict::Seize,
        0 => Verdict::Pass,
        _ => Verdict::Wait,
    }
}

/// Visits the IDs of `wanted`; `own` gets every shard.
fn visit<'c>(
    wanted: u64,
    sections: bool,
    word: impl Fn(u32) -> &'c AtomicI64,
    judge: impl Fn(i64) -> Verdict,
    mut own: impl FnMut(u32, &mut Seized<'c>),
) {
    let mut visit = Visit::new(wanted, sections);
    while let Some((bit, mut seized)) = visit.next(&word, &judge) {
        own(bit, &mut seized);
    }
}

/// Visits all three shards, with sections. Returns the shards that it owned, and the number of
/// fences. `at_fence` runs during the fence of that number, and returns the kernel's result.
fn visit_all(
    words: &'static [AtomicI64; 3],
    at_fence: impl Fn(usize) -> Result<(), i32> + 'static,
) -> (Vec<(u32, i64)>, usize) {
    let fences = Rc::new(Cell::new(0));
    let count = Rc::clone(&fences);
    let _watching = steps::watch(move |step| match step {
        Step::Membarrier(Fence::OfAll) => {
            count.set(count.get() + 1);
            Some(at_fence(count.get()))
        }
        _ => None,
    });
    let mut owned = Vec::new();
    visit(
        0b111,
        true,
        |bit| &words[bit as usize],
        judge,
        |bit, seized| {
            let word = &words[bit as usize];
            assert_eq!(word.load(Relaxed), seized.value | SEIZED, "another could take it");
            owned.push((bit, seized.value));
            seized.value = 0;
        },
    );
    (owned, fences.get())
}

#[test]
fn all_are_marked_before_the_one_fence() {
    let words = words([5, 0, 7]);
    let visited = visit_all(words, |_| {
        assert_eq!(values(words), [5 | SEIZED, 0, 7 | SEIZED]);
        Ok(())
    });
    assert_eq!((visited, values(words)), ((vec![(0, 5), (2, 7)], 1), [0, 0, 0]));
}

#[test]
fn a_section_that_commits_over_the_mark_keeps_its_shard_until_the_next_try() {
    let words = words([5, 0, 7]);
    let visited = visit_all(words, |fence| {
        if fence == 1 {
            words[0].store(6, Relaxed);
        } else {
            assert_eq!(values(words), [6 | SEIZED, 0, 0]);
        }
        Ok(())
    });
    assert_eq!((visited, values(words)), ((vec![(2, 7), (0, 6)], 2), [0, 0, 0]));
}

#[test]
fn without_the_fence_the_marks_are_taken_away_and_nothing_is_touched() {
    let words = words([5, 0, 7]);
    let visited = visit_all(words, |fence| {
        if fence == 1 {
            words[2].store(8, Relaxed);
        }
        Err(steps::REFUSED)
    });
    assert_eq!((visited, values(words)), ((vec![], 1), [5, 0, 8]));
}

/// A shard that is marked, and confirmed after the one at which the visitor panics.
#[test]
fn a_visitor_that_panics_leaves_no_mark() {
    let words = words([5, 6, 7]);
    let visit = || {
        let word = |bit: u32| &words[bit as usize];
        visit(0b111, false, word, judge, |bit, _| assert_ne!(bit, 1, "on purpose"));
    };
    assert!(std::panic::catch_unwind(visit).is_err());
    assert_eq!(values(words), [5, 6, 7]);
}

#[test]
fn without_sections_there_is_no_fence() {
    let words = words([5, 6, 0]);
    let _watching = steps::watch(|step| panic!("{step:?}"));
    let owned = RefCell::new(Vec::new());
    let word = |bit: u32| &words[bit as usize];
    visit(0b111, false, word, judge, |bit, _| owned.borrow_mut().push(bit));
    assert_eq!(*owned.borrow(), [0, 1]);
}

/// The owner is slow: it returns the shard while the visitor checks it for the fiftieth time.
#[test]
fn an_owner_that_takes_its_time_is_waited_for() {
    let words = words([-2, 0, 0]);
    let looks = Cell::new(0);
    let judge = |value| {
        looks.set(looks.get() + 1);
        if looks.get() == 50 {
            words[0].store(5, Relaxed);
        }
        judge(value)
    };
    let mut owned = Vec::new();
    visit(1, false, |_| &words[0], judge, |_, seized| owned.push(seized.value));
    assert_eq!(owned, [5]);
}

/// Far longer than anything here takes, on any machine.
const FOREVER: Duration = Duration::from_secs(600);

#[test]
fn an_owner_is_waited_for_but_not_forever() {
    let (done, end) = mpsc::channel();
    thread::spawn(move || {
        visit_what_is_owned();
        let _ = done.send(());
    });
    end.recv_timeout(FOREVER).expect("it ends, and well");
}

fn visit_what_is_owned() {
    let words = words([-2, 6, 0]);
    let word = |bit: u32| &words[bit as usize];
    let mut owned = Vec::new();
    visit(0b111, false, word, judge, |bit, _| {
        // The owner of the other shard returns it after it was found taken.
        words[0].store(5, Relaxed);
        owned.push(bit);
    });
    assert_eq!(owned, [1, 0]);
    words[2].store(-2, Relaxed);
    visit(0b100, false, word, judge, |bit, _| panic!("{bit} is not to be had"));
}

#[test]
fn a_shard_is_given_back_after_the_announcement() {
    let word = AtomicI64::new(SEIZED);
    let announce = || assert_eq!(word.load(Relaxed), SEIZED);
    owned(&word, 1).give_back_after(announce);
    assert_eq!(word.load(Relaxed), 1);
}
