//! Tests of stacks with every source, step by step and among threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

use super::chunks::ITEMS;
use super::shard::ACTIVATING;
use super::*;
use crate::seizure::SEIZED;
use crate::sys::steps::{self, Step};

fn with_every_source(capacity: u32, test: impl Fn(Stack<u64>, Source)) {
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        test(Stack::with_source(source, capacity).expect("an available source"), source);
    }
}

#[test]
fn the_last_item_comes_first() {
    with_every_source(8, |stack, source| {
        // Other CPUs have other parts; the test assumes that the thread mostly stays on its
        // CPU.
        (1..=5).for_each(|item| stack.push(item).expect("room"));
        let mut popped: Vec<u64> = std::iter::from_fn(|| stack.pop()).collect();
        stack.drain(|item| popped.push(item));
        popped.sort_unstable();
        assert_eq!(popped, [1, 2, 3, 4, 5], "{source}");
    });
}

#[test]
fn what_does_not_fit_a_part_goes_to_the_shared_list_and_comes_back() {
    for capacity in [1, 2, 3, 64] {
        with_every_source(capacity, |stack, source| {
            (0..1000).for_each(|item| stack.push(item).expect("room"));
            let mut all: Vec<u64> = (0..500).filter_map(|_| stack.pop()).collect();
            stack.drain(|item| all.push(item));
            all.sort_unstable();
            assert_eq!(all, (0..1000).collect::<Vec<_>>(), "{source} {capacity}");
        });
    }
}

/// Without the look that comes first, each push and each pop is tried once more.
#[test]
fn a_full_and_an_empty_stack_are_found_by_one_look() {
    for source in Source::ALL.iter().copied() {
        let mut stack = Stack::<u64>::bounded(4, 0);
        let Ok(handle) = Handle::with_source(source, Needs::Fence, stack.bytes()) else { continue };
        stack.handle = handle;
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let _watching = steps::watch(move |step| {
            (step == Step::Try).then(|| counted.fetch_add(1, Relaxed));
            None
        });
        let refused = (0..10_000).filter(|&item| stack.push(item) == Err(item)).count();
        let missed = (0..10_000).filter(|_| stack.pop().is_none()).count();
        assert!(refused > 5000 && missed > 5000, "{source}");
        // Sections that were aborted are tried again; half of them never are.
        assert!(tries.load(Relaxed) < 5000, "{source}: {tries:?} tries");
    }
}

#[test]
fn a_bounded_stack_refuses_and_gives_back() {
    let stack = Stack::bounded(4, 10);
    let refused = (0..10_000).filter(|&item| stack.push(item) == Err(item)).count();
    let kept = stack.drain(drop);
    assert_eq!(refused + kept, 10_000);
    assert!((10..10 + ITEMS + 4 * 64).contains(&kept), "{kept}");
}

#[test]
fn a_batch_that_does_not_fit_goes_back_to_the_shared_list() {
    with_every_source(4, |stack, source| {
        for item in 0..20 {
            stack.chunks.push(into_word(item)).expect("memory");
        }
        assert!(stack.pop().is_some(), "{source}");
        assert_eq!(stack.drain(drop), 19, "{source}");
    });
}

/// The test includes threads whose part is not available: then all their items go to the shared
/// list.
#[test]
fn the_shared_list_is_bounded() {
    with_every_source(4, |mut stack, source| {
        stack.shared_limit = 10;
        push_to_parts(&stack, 0..1);
        let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
        let change = |change: fn(&AtomicI64)| {
            (0..source.id_count()).for_each(|id| change(block.word_of_id(id)));
        };
        change(|word| _ = word.fetch_or(SEIZED, Relaxed));
        let kept = (0..1000).filter(|&item| stack.push(item).is_ok()).count();
        assert!((10..10 + ITEMS + 4 * 64).contains(&kept), "{source}: {kept}");
        change(|word| _ = word.fetch_and(i64::MAX, Relaxed));
        assert_eq!(stack.drain(drop), kept + 1, "{source}");
    });
}

#[test]
fn it_goes_on_after_a_drain() {
    with_every_source(16, |stack, source| {
        for round in 0..3 {
            assert_eq!(stack.push(round), Ok(()), "{source}");
            let mut drained = Vec::new();
            assert_eq!(stack.drain(|item| drained.push(item)), 1, "{source}");
            assert_eq!(drained, [round], "{source}");
            assert_eq!(stack.pop(), None, "{source}");
        }
    });
}

#[test]
fn items_are_dropped_with_it_and_no_earlier() {
    let stack = Stack::new(4);
    let item = Arc::new(());
    for _ in 0..100 {
        assert!(stack.push(Arc::clone(&item)).is_ok());
    }
    assert_eq!(Arc::strong_count(&item), 101);
    drop(stack.pop());
    assert_eq!(Arc::strong_count(&item), 100);
    drop(stack);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn a_visitor_that_panics_keeps_the_rest() {
    with_every_source(64, |stack, source| {
        push_to_parts(&stack, 0..40);
        let seen = AtomicUsize::new(0);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            stack.drain(|_| assert!(seen.fetch_add(1, Relaxed) < 9, "enough"));
        }));
        assert!(result.is_err());
        assert_eq!(stack.drain(drop), 30, "{source}");
    });
}

/// The shared list has items that it could take.
#[test]
fn a_drain_inside_a_drain_does_nothing() {
    let stack = Stack::new(4);
    (0..100).for_each(|item| stack.push(item).expect("room"));
    assert_eq!(stack.drain(|_| assert_eq!(stack.drain(drop), 0)), 100);
}

/// Returns the tops of all existing shards.
fn tops(stack: &Stack<u64>) -> Vec<i64> {
    let State::Claimed(block, Some(source)) = stack.handle.state() else { return Vec::new() };
    (0..source.id_count()).map(|id| block.word_of_id(id).load(Relaxed)).collect()
}

/// Returns a stack for the observed steps of the test's own thread; it exists forever.
fn watched(capacity: u32, source: Source) -> &'static Stack<u64> {
    Box::leak(Box::new(Stack::with_source(source, capacity).expect("an available source")))
}

/// Pushes these items, all of them to parts: occasionally no ID is available.
fn push_to_parts(stack: &Stack<u64>, items: std::ops::Range<u64>) {
    loop {
        items.clone().for_each(|item| stack.push(item).expect("room"));
        if stack.chunks.items() == 0 {
            return;
        }
        stack.drain(drop);
    }
}

#[test]
fn a_shard_is_a_member_before_it_is_active_and_until_it_is_not() {
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let stack = watched(8, source);
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let note = std::rc::Rc::clone(&seen);
        let _watching = steps::watch(move |step| {
            if let Step::Insert(id) | Step::Remove(id) = step {
                let top = tops(stack)[id as usize];
                note.borrow_mut().push((matches!(step, Step::Insert(_)), top));
            }
            None
        });
        // The thread stays on the same CPU except at the end of a time slice, which comes after
        // hundreds of attempts. If it were every second attempt, all would fail once in 2^100.
        let right = (0..100).any(|_| {
            seen.borrow_mut().clear();
            stack.push(5).expect("room");
            stack.drain(drop);
            // When the membership ends, the only item was taken out.
            *seen.borrow() == [(true, ACTIVATING), (false, 2 | SEIZED)]
        });
        assert!(right, "{source}: {seen:?}");
    }
}

#[test]
fn a_drain_without_the_fence_leaves_everything_as_it_is() {
    for source in [Source::Table, Source::Kernel] {
        if source.prepare().is_err() {
            continue;
        }
        let stack = watched(64, source);
        push_to_parts(stack, 0..10);
        let watching = steps::watch(|step| match step {
            Step::Membarrier(_) => Some(Err(steps::REFUSED)),
            _ => None,
        });
        assert_eq!(stack.drain(drop), 0, "{source}");
        drop(watching);
        assert!(tops(stack).iter().all(|&top| top >= 0), "{source}: a mark is left");
        let mut drained = Vec::new();
        assert_eq!(stack.drain(|item| drained.push(item)), 10, "{source}");
        drained.sort_unstable();
        assert_eq!(drained, (0..10).collect::<Vec<_>>(), "{source}");
    }
}

/// In a child of `fork`, a shard that a thread of the parent owned may be in any state.
#[test]
fn what_another_thread_owned_at_a_fork_is_left_alone() {
    with_every_source(8, |stack, source| {
        push_to_parts(&stack, 7..8);
        let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
        let id = tops(&stack).iter().position(|&top| top == 2).expect("where it was pushed");
        let word = block.word_of_id(id as u32);
        word.store(2 | SEIZED, Relaxed);
        assert_eq!(stack.drain(drop), 0, "{source}");
        assert_eq!(word.load(Relaxed), 2 | SEIZED, "{source}");
    });
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Item;
    impl Drop for Item {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let stack = Stack::with_source(source, 8).expect("an available source");
        (0..5).for_each(|_| assert!(stack.push(Item).is_ok()));
        let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
        (0..source.id_count()).for_each(|id| {
            block.word_of_id(id).fetch_or(SEIZED, Relaxed);
        });
        let in_parts = 5 - stack.chunks.items();
        DROPPED.store(0, Relaxed);
        drop(stack);
        assert_eq!(DROPPED.load(Relaxed), 5 - in_parts, "{source}");
    }
}

#[test]
fn a_full_part_takes_no_more_and_nothing_is_lost_on_the_way_to_it() {
    with_every_source(4, |stack, source| {
        push_to_parts(&stack, 0..2);
        (0..100).for_each(|item| stack.push(item).expect("room"));
        assert!(tops(&stack).iter().all(|&top| top <= stack.full()), "{source}");
        let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
        let mut chunk = stack.chunks.fresh().expect("memory");
        (0..20).for_each(|item| chunk.push(into_word(item)));
        // Finally there is no room, and the rest stays in the chunk.
        let before = stack.chunks.items();
        let stowed: usize = (0..10)
            .map(|_| {
                let items = chunk.len();
                stack.stow(block, source, &mut chunk);
                items - chunk.len()
            })
            .sum();
        assert_eq!(chunk.len() + stowed, 20, "{source}");
        stack.chunks.put(chunk);
        assert!(stack.chunks.items() >= before, "{source}");
        assert_eq!(stack.drain(drop), 122, "{source}");
    });
}

#[test]
#[cfg_attr(not(unix), ignore = "errno is kept on Unix")]
fn errno_is_left_alone() {
    use crate::sys::{errno, set_errno};

    while crate::id::selection::get().is_none() {}
    for push in [true, false] {
        let stack = Stack::new(4);
        // Every step of the first use sets errno as if it failed.
        let _watching = steps::watch(move |_| {
            set_errno(84);
            None
        });
        set_errno(33);
        if push {
            stack.push(1u64).expect("room");
        } else {
            assert_eq!(stack.pop(), None);
        }
        assert_eq!(errno(), 33);
    }
}

#[test]
fn nothing_is_lost_among_threads_and_drains() {
    const ITEMS: u64 = if cfg!(miri) { 100 } else { 50_000 };
    const DRAINS: usize = if cfg!(miri) { 10 } else { 200 };
    with_every_source(32, |stack, source| {
        let gone: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut popped = 0;
                        for item in 0..ITEMS {
                            stack.push(item).expect("room");
                            popped += usize::from(item % 3 != 0 && stack.pop().is_some());
                        }
                        popped
                    })
                })
                .collect();
            let drained: usize = (0..DRAINS).map(|_| stack.drain(drop)).sum();
            let popped = workers.into_iter().map(|it| it.join().expect("no panic"));
            popped.sum::<usize>() + drained
        });
        assert_eq!(gone + stack.drain(drop), 4 * ITEMS as usize, "{source}");
    });
}
