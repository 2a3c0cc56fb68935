//! The choice of the source: made by one thread, complete for all that observe it, and no thread
//! waits for it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::sys::cell::UnsafeCell;
use crate::try_once::TryOnce;

type Shared = Arc<(TryOnce<(u64, u64)>, AtomicUsize)>;

/// Runs two threads that request the value; `left` is the state they find.
fn two_threads(left: u64, exists: fn(u64) -> bool) -> Vec<Option<(u64, u64)>> {
    let once = TryOnce { state: AtomicU64::new(left), value: UnsafeCell::new(None) };
    let shared: Shared = Arc::new((once, AtomicUsize::new(0)));
    let ask = move |shared: Shared, me: u64| {
        let decide = || {
            shared.1.fetch_add(1, Relaxed);
            Some((me, !me))
        };
        shared.0.get_or_decide(|| me, exists, decide)
    };
    let theirs = Arc::clone(&shared);
    let other = thread::spawn(move || ask(theirs, 7));
    let mut answers = vec![ask(Arc::clone(&shared), 8), other.join().unwrap()];
    // All have ended: this must be decided, unless the decider is still thought to live.
    answers.push(ask(Arc::clone(&shared), 9));
    assert!(shared.1.load(Relaxed) <= 1, "decided twice");
    answers
}

#[test]
fn one_decides_and_nobody_sees_half() {
    explore::all("once, 2 threads", || {
        // Nobody has the number that stands for the decision.
        let answers = two_threads(0, |number| number < 16);
        let last = answers[2].expect("decided");
        assert_eq!(last.1, !last.0);
        assert!(answers.iter().flatten().all(|&answer| answer == last));
        assert!(answers[0].is_some() || answers[1].is_some());
    });
}

#[test]
fn a_child_takes_over_from_a_thread_that_does_not_exist() {
    explore::all("once, abandoned, 2 threads", || {
        // Thread 5 was deciding when the process forked; 7 and 8 live.
        let answers = two_threads(5, |number| number != 5);
        assert!(answers[2].is_some());
    });
}

#[test]
fn who_cannot_decide_yet_leaves_it_to_the_next() {
    explore::all("once, undecided at first, 2 threads", || {
        let once = TryOnce { state: AtomicU64::new(0), value: UnsafeCell::new(None) };
        let shared: Shared = Arc::new((once, AtomicUsize::new(0)));
        let ask = |shared: &Shared, me: u64| {
            let decide = || (shared.1.fetch_add(1, Relaxed) > 0).then_some((me, !me));
            shared.0.get_or_decide(|| me, |_| true, decide)
        };
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || ask(&theirs, 7));
        let answers = [ask(&shared, 8), other.join().unwrap()];
        assert!(answers.contains(&None), "the first could not decide");
        let last = ask(&shared, 9).or_else(|| ask(&shared, 9)).expect("decided by now");
        assert_eq!(last.1, !last.0);
        assert!(answers.iter().flatten().all(|&answer| answer == last));
    });
}

#[test]
fn while_the_decider_lives_nobody_else_decides() {
    explore::all("once, being decided, 2 threads", || {
        assert_eq!(two_threads(5, |_| true), [None, None, None]);
    });
}

#[test]
fn a_handler_leaves_the_decision_to_what_it_interrupts() {
    explore::all("once, in the middle of one's own decision", || {
        let once: TryOnce<u32> = TryOnce { state: AtomicU64::new(7), value: UnsafeCell::new(None) };
        // The same whether or not the kernel has the thread.
        for exists in [true, false] {
            let answer = once.get_or_decide(|| 7, |_| exists, || unreachable!("it is not ours"));
            assert_eq!((answer, once.state.load(Relaxed)), (None, 7));
        }
    });
}

#[test]
fn taking_over_from_the_living_is_caught() {
    explore::expect_failure("once, everybody takes over", || {
        two_threads(0, |_| false);
    });
}
