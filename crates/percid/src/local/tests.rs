//! Tests of values with every source, step by step and among threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::lock::{ABANDONED, Lock, NONE};
#[cfg(all(unix, not(any(miri, percid_plain))))]
use super::shard::LocalGuard;
use super::*;
use crate::sys::steps::{self, Fence, Step};

fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

#[test]
fn default_values_are_those_of_their_type() {
    static LISTS: Local<Vec<u8>> = Local::new(Vec::new);
    let lists = Local::<Vec<u8>>::default();
    for local in [&LISTS, &lists] {
        assert_eq!(local.with(|list| list.len()), 0);
    }
}

#[test]
fn no_two_closures_have_one_value() {
    const CLOSURES: u64 = if cfg!(miri) { 100 } else { 100_000 };
    for source in sources() {
        let local = <Local<_>>::with_source(source, || 0u64).expect("an available source");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..CLOSURES).for_each(|_| local.with(|value| *value += 1)));
            }
        });
        let mut sum = 0;
        local.for_each(|value| sum += *value);
        assert_eq!(sum, 4 * CLOSURES, "{source}");
    }
}

#[test]
fn a_closure_inside_a_closure_has_another_value() {
    for source in sources() {
        let local = <Local<_>>::with_source(source, || 0).expect("an available source");
        local.with(|outer| {
            *outer += 1;
            local.with(|inner| {
                *inner += 10;
                local.with(|innermost| *innermost += 100);
            });
        });
        let mut values = Vec::new();
        local.drain(|value| values.push(value));
        assert_eq!(values.iter().sum::<i32>(), 111, "{source}");
        assert_eq!(values.len(), 3, "{source}");
        local.for_each(|_| panic!("nothing is left"));
    }
}

#[test]
fn a_value_is_made_again_after_a_drain() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let local = Local::new(|| MADE.fetch_add(1, Relaxed));
    let first = local.with(|value| *value);
    local.drain(drop);
    assert!(local.with(|value| *value) > first);
}

#[test]
fn what_makes_values_may_capture() {
    let made = AtomicUsize::new(0);
    let (name, kept) = (String::from("captured"), Arc::new(()));
    let local = Local::new({
        let (made, kept) = (&made, Arc::clone(&kept));
        move || (name.len() + made.fetch_add(1, Relaxed), Arc::clone(&kept))
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| local.with(|_| local.with(|(length, _)| assert!(*length >= 8))));
        }
    });
    let mut lengths = Vec::new();
    local.for_each(|(length, _)| lengths.push(*length));
    lengths.sort_unstable();
    let made = made.load(Relaxed);
    assert_eq!(lengths, (8..8 + made).collect::<Vec<_>>(), "each was made once");
    assert_eq!(Arc::strong_count(&kept), 2 + made);
    drop(local);
    assert_eq!(Arc::strong_count(&kept), 1, "the closure is dropped with it");
}

#[test]
fn values_are_dropped_with_it() {
    let kept = Arc::new(());
    let local = Local::new(|| Arc::clone(&kept));
    local.with(|_| local.with(|_| ()));
    assert_eq!(Arc::strong_count(&kept), 3);
    drop(local);
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn panics_release_the_value() {
    let local = Local::new(|| 1);
    let thrown = catch_unwind(AssertUnwindSafe(|| {
        local.with(|value| {
            *value = 5;
            panic!("on purpose");
        })
    }));
    assert!(thrown.is_err());
    let thrown = catch_unwind(AssertUnwindSafe(|| local.for_each(|_| panic!("on purpose"))));
    assert!(thrown.is_err());
    let mut values = Vec::new();
    local.for_each(|value| values.push(*value));
    assert_eq!(values, [5]);
}

#[test]
fn a_value_that_cannot_be_made_leaves_nothing_behind() {
    static FAIL: AtomicUsize = AtomicUsize::new(1);
    let local = Local::new(|| assert_eq!(FAIL.load(Relaxed), 0, "on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(|| local.with(|()| ()))).is_err());
    local.for_each(|()| panic!("there is no value"));
    FAIL.store(0, Relaxed);
    local.with(|()| ());
    let mut count = 0;
    local.for_each(|()| count += 1);
    assert_eq!(count, 1);
}

#[test]
fn a_thread_that_would_wait_for_itself_panics() {
    for source in sources() {
        let local = <Local<_>>::with_source(source, || 0).expect("an available source");
        let inside = || local.with(|_| local.for_each(|_| ()));
        assert!(catch_unwind(AssertUnwindSafe(inside)).is_err(), "{source}");
        let nested = || local.for_each(|_| local.drain(drop));
        assert!(catch_unwind(AssertUnwindSafe(nested)).is_err(), "{source}");
        // It panics before it visits anything, although no thread uses the first value.
        let (first, second) = (local.hold_shard(), local.hold_shard());
        drop(first);
        let visit = || local.for_each(|value| *value = 7);
        assert!(catch_unwind(AssertUnwindSafe(visit)).is_err(), "{source}");
        drop(second);
        // All existing shards: the thread may have moved to a CPU that has none.
        local.for_each(|value| *value += 1);
        let mut values = Vec::new();
        local.for_each(|value| values.push(*value));
        assert!(!values.is_empty() && values.iter().all(|&value| value == 1), "{values:?}");
    }
}

/// Takes values until one is an extra one, which visits reach last.
#[cfg(all(unix, not(any(miri, percid_plain))))]
fn keep<'l>(local: &'l Local<i32>, kept: &mut Vec<LocalGuard<'l, i32>>) {
    // SAFETY: shards stay mapped as long as the handle.
    let state = |shard: NonNull<Shard<i32>>| unsafe { (*shard.as_ptr()).lock.state() };
    while !local.extras().any(|extra| state(extra) == thread::token() as i64) {
        kept.extend(local.hold_shard().map(LocalGuard));
    }
}

/// A C function that a visit calls can do this; a Rust closure always releases its value.
#[test]
#[cfg(all(unix, not(any(miri, percid_plain))))]
fn a_visit_does_not_wait_for_what_its_own_thread_has_kept() {
    for source in sources() {
        let local = <Local<_>>::with_source(source, || 0).expect("an available source");
        make_one(&local);
        left_behind::tests::in_child(|| {
            let mut kept = Vec::new();
            let mut visit = local.begin_visit().expect("it has none yet");
            while let Ok(Some(_)) = visit.next() {
                keep(&local, &mut kept);
            }
            visit.next().is_err()
        });
        let mut kept = Vec::new();
        let visit = || local.for_each(|_| keep(&local, &mut kept));
        assert!(catch_unwind(AssertUnwindSafe(visit)).is_err(), "{source}");
        let drain = || local.drain(drop);
        assert!(catch_unwind(drain).is_err(), "{source}");
        drop(kept);
        local.drain(drop);
    }
}

/// Returns a local for the observed steps of the test's own thread; it exists forever.
fn watched<T>(source: Source, make: fn() -> T) -> &'static Local<T> {
    Box::leak(Box::new(Local::with_source(source, make).expect("an available source")))
}

/// Returns the locks of all shards of IDs: the state, and `true` if the shard is closed.
fn locks<T, F>(local: &Local<T, F>) -> Vec<(i64, bool)> {
    let State::Claimed(block, Some(source)) = local.handle.state() else { return Vec::new() };
    let shard = |id| -> NonNull<Shard<T>> { shard_at(block.of_id(id)) };
    // SAFETY: shards stay mapped as long as the handle.
    let lock = |id| unsafe { &(*shard(id).as_ptr()).lock };
    (0..source.id_count()).map(|id| (lock(id).state(), lock(id).is_closed())).collect()
}

/// Makes the value of an ID, not only extra ones: occasionally no ID is available.
fn make_one<T: Send>(local: &Local<T, impl Fn() -> T>) {
    while locks(local).iter().all(|lock| lock.0 == NONE) {
        local.with(|_| ());
    }
}

#[test]
#[cfg_attr(miri, ignore = "its local stays, which is a leak")]
fn a_shard_is_a_member_before_it_has_a_value_and_as_long() {
    for source in sources() {
        let token = thread::token() as i64;
        let local = watched(source, || 0u64);
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let note = std::rc::Rc::clone(&seen);
        let _watching = steps::watch(move |step| {
            if let Step::Insert(id) | Step::Remove(id) = step {
                let member = local.members.contains(id);
                note.borrow_mut().push((member, locks(local)[id as usize]));
            }
            None
        });
        make_one(local);
        let inserted = [(false, (token, false))];
        assert_eq!(seen.borrow().as_slice(), inserted, "{source}");
        let no_members = || local.members.words().all(|(_, bits)| bits == 0);
        local.drain(|_| assert!(no_members(), "{source}: removed too late"));
        assert_eq!(seen.borrow()[1..], [(true, (token, true))], "{source}");
        assert!(locks(local).iter().all(|&lock| lock == (NONE, false)), "{source}");
    }
}

#[test]
fn all_are_closed_before_the_one_fence_and_none_without_it() {
    for source in [Source::Table, Source::Kernel] {
        if source.prepare().is_err() {
            continue;
        }
        for refused in [false, true] {
            let local = watched(source, || 7u64);
            make_one(local);
            let all = || {
                let mut visited = 0;
                local.for_each(|value| visited += *value);
                visited
            };
            let before = all();
            let of_ids = 7 * locks(local).iter().filter(|lock| lock.0 == READY).count() as u64;
            let fences = std::rc::Rc::new(std::cell::Cell::new(0));
            let count = std::rc::Rc::clone(&fences);
            let watching = steps::watch(move |step| {
                if step != Step::Membarrier(Fence::OfAll) {
                    return None;
                }
                count.set(count.get() + 1);
                let members = locks(local).into_iter().filter(|lock| lock.0 != NONE);
                assert!(members.clone().count() > 0 && members.clone().all(|lock| lock.1));
                Some(if refused { Err(steps::REFUSED) } else { Ok(()) })
            });
            let missed = if refused { of_ids } else { 0 };
            assert_eq!((all() + missed, fences.get()), (before, 1), "{source}");
            drop(watching);
            assert!(locks(local).iter().all(|lock| !lock.1), "{source}: closed forever");
            assert_eq!(all(), before, "{source}");
        }
    }
}

/// A count of the waits of a thread.
fn waits_seen() -> &'static AtomicUsize {
    Box::leak(Box::default())
}

fn until_waiting(waits: &AtomicUsize) {
    while waits.load(Relaxed) == 0 {
        std::thread::yield_now();
    }
}

/// A section that took the lock before the fence may keep it for any time.
#[test]
fn a_holder_is_waited_for() {
    for source in sources() {
        let local = <Local<_>>::with_source(source, || 0u64).expect("an available source");
        let (inside, both) = (std::sync::Barrier::new(2), AtomicUsize::new(0));
        let waits = waits_seen();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                local.with(|value| {
                    inside.wait();
                    until_waiting(waits);
                    *value = 5;
                    both.fetch_add(1, Relaxed);
                });
            });
            inside.wait();
            let _watching = steps::watch(move |step| {
                waits.fetch_add(usize::from(step == Step::Wait), Relaxed);
                None
            });
            let (mut sum, mut two) = (0, false);
            local.for_each(|value| {
                two |= both.load(Relaxed) == 0;
                sum += *value;
            });
            // A visitor that has not waited must not leave the holder waiting for that.
            waits.fetch_add(1, Relaxed);
            assert!(!two, "{source}: two have the value");
            assert_eq!(sum, 5, "{source}");
        });
    }
}

/// In a child of `fork`, a value that a thread of the parent was using may be in any state.
#[test]
fn a_value_in_use_at_a_fork_is_not_dropped() {
    static KEPT: std::sync::LazyLock<Arc<()>> = std::sync::LazyLock::new(Default::default);
    for source in sources() {
        let local = <Local<_>>::with_source(source, || Arc::clone(&KEPT)).expect("available");
        make_one(&local);
        let State::Claimed(block, Some(_)) = local.handle.state() else { panic!("{source}") };
        let in_use = (0..source.id_count()).filter(|&id| {
            let shard: NonNull<Shard<Arc<()>>> = shard_at(block.of_id(id));
            // SAFETY: shards stay mapped as long as the handle.
            unsafe { (*shard.as_ptr()).lock.try_take(READY) }
        });
        let kept = in_use.count();
        let others = Arc::strong_count(&KEPT);
        let extra = local.extras().count();
        drop(local);
        assert!(kept > 0 && Arc::strong_count(&KEPT) == others - extra, "{source}");
    }
}

#[test]
fn a_drain_that_panics_has_taken_the_value_out() {
    static KEPT: std::sync::LazyLock<Arc<()>> = std::sync::LazyLock::new(Default::default);
    let local = Local::new(|| Arc::clone(&KEPT));
    local.with(|_| ());
    let thrown = catch_unwind(AssertUnwindSafe(|| local.drain(|_| panic!("on purpose"))));
    assert!(thrown.is_err());
    assert_eq!(Arc::strong_count(&KEPT), 1);
    local.for_each(|_| panic!("it is gone"));
    drop(local);
    assert_eq!(Arc::strong_count(&KEPT), 1);
}

/// A second visitor would open the shards that the first one has closed. It does not reach its
/// fence.
#[test]
fn one_visits_at_a_time() {
    for source in [Source::Table, Source::Kernel] {
        if source.prepare().is_err() {
            continue;
        }
        let local = watched(source, || 0u64);
        make_one(local);
        let (inside, left) = (std::sync::Barrier::new(2), AtomicUsize::new(0));
        let left: &'static AtomicUsize = Box::leak(Box::new(left));
        let waits = waits_seen();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                inside.wait();
                let _watching = steps::watch(move |step| {
                    let two = step == Step::Membarrier(Fence::OfAll) && left.load(Relaxed) == 0;
                    // One that has not waited must not leave the first one waiting for that.
                    waits.fetch_add(usize::from(two || step == Step::Wait), Relaxed);
                    assert!(!two, "two visit");
                    None
                });
                local.for_each(|_| ());
            });
            let mut first = true;
            local.for_each(|_| {
                if std::mem::take(&mut first) {
                    inside.wait();
                    until_waiting(waits);
                    left.store(1, Relaxed);
                }
            });
            if first {
                inside.wait();
            }
            assert!(!first, "{source}: nothing was visited");
        });
    }
}

/// Each would wait for the other's closure, and for the lock of visitors.
#[test]
fn two_visits_from_inside_both_panic() {
    let local = Local::new(|| 0);
    let both = std::sync::Barrier::new(2);
    let visit = || {
        local.with(|_| {
            both.wait();
            catch_unwind(AssertUnwindSafe(|| local.for_each(|_| ()))).is_err()
        })
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(visit);
        assert!(visit());
        assert!(other.join().expect("the panic was caught"));
    });
}

#[test]
fn values_are_aligned() {
    #[repr(align(256))]
    struct Aligned(u8);
    let local = Local::new(|| Aligned(1));
    let address = |value: &mut Aligned| (&raw const value.0).addr();
    assert_eq!(local.with(address) % 256, 0);
    assert_eq!(local.with(|_| local.with(address)) % 256, 0);
}

/// Objects of C have no function: their values are zeros.
#[test]
fn values_without_a_function_are_zeros() {
    let mut local: Local<[u64; 3]> = Local::new(|| [7; 3]);
    local.make = None;
    local.with(|value| value[1] = 5);
    let mut values = Vec::new();
    local.with(|_| local.with(|value| values.push(*value)));
    local.for_each(|value| values.push(*value));
    assert!(values.contains(&[0, 5, 0]) && values.contains(&[0; 3]), "{values:?}");
    assert!(values.iter().all(|value| [[0; 3], [0, 5, 0]].contains(value)), "{values:?}");
}

/// Returns an open lock in a state.
fn lock_in(state: i64) -> Lock {
    let (state, closed) = (crate::sys::atomic::AtomicI64::new(state), AtomicU64::new(0));
    Lock { state, closed }
}

#[test]
fn a_closed_shard_is_the_visitors() {
    let (lock, token) = (lock_in(READY), thread::token() as i64);
    lock.close();
    assert!(!lock.try_take(READY) && lock.state() == READY, "closed");
    lock.open();
    assert!(lock.try_take(READY) && lock.state() == token);
    assert!(!lock.try_take(READY) && lock.state() == token, "in use");
    lock.release(READY);
    lock.close();
    let never_asked = |_: &crate::backoff::Backoff| -> bool { unreachable!("nobody holds it") };
    assert!(lock.take_closed(never_asked) && lock.state() == token);
    lock.release(NONE);
    assert!(!lock.take_closed(never_asked) && lock.state() == NONE);
}

#[test]
fn a_holder_that_has_left_is_not_waited_for() {
    let lock = lock_in(77);
    lock.close();
    assert!(!lock.take_closed(|_| true));
    assert_eq!(lock.state(), ABANDONED);
    assert!(!lock.take_closed(|_| unreachable!("nobody holds it")));
    // It was alive after all, and releases the lock while the visitor waits.
    let late = lock_in(77);
    let releases = |_: &crate::backoff::Backoff| {
        late.release(READY);
        false
    };
    assert!(late.take_closed(releases));
}
