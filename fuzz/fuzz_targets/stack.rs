//! Stacks and pools against sets of items: none is lost, none comes twice, and each from where it
//! may come.
#![no_main]

use std::alloc::Layout;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid::Stack;
use percid::pool::RawPool;
use percid_fuzz::one_cpu::{self, Thief};

#[derive(Arbitrary, Debug)]
enum Input {
    Stack { source: u8, capacity: u8, shared: Option<u8>, steps: Vec<OfStack> },
    Pool { source: u8, capacity: u8, size: u16, align: u8, steps: Vec<OfPool> },
}

#[derive(Arbitrary, Debug)]
enum OfStack {
    Push(u8),
    Pop(u8),
    Drain,
    /// A drain that ends after some items.
    DrainSome(u8),
    /// Steals this CPU's ID: its items cannot be reached by this thread until a drain.
    Steal,
    PutBack,
}

#[derive(Arbitrary, Debug)]
enum OfPool {
    Get(u8),
    Put(u8),
    Drain,
    Steal,
    PutBack,
}

/// Items that move at once at most.
const BATCH: usize = 30;

fuzz_target!(init: { one_cpu::stay(); }, |input: Input| {
    match input {
        Input::Stack { source, capacity, shared, steps } => {
            let capacity = u32::from(capacity % 80) + 1;
            // A bounded stack has the source of the process.
            match shared {
                Some(shared) => stack(Stack::bounded(capacity, shared.into()), Some(shared), true, steps),
                None => {
                    let (source, can_be_stolen) = one_cpu::source(source);
                    let stack_of = Stack::with_source(source, capacity).expect("it works");
                    stack(stack_of, None, can_be_stolen, steps);
                }
            }
        }
        Input::Pool { source, capacity, size, align, steps } => {
            let layout = Layout::from_size_align(size.into(), 1 << (align % 13)).expect("small");
            let (source, can_be_stolen) = one_cpu::source(source);
            let pool = RawPool::with_source(source, layout, u32::from(capacity % 80) + 1);
            self::pool(pool.expect("it works"), can_be_stolen, steps);
        }
    }
});

fn stack(stack: Stack<u64>, shared: Option<u8>, can_be_stolen: bool, steps: Vec<OfStack>) {
    let capacity = stack.capacity() as usize;
    let mut items: BTreeSet<u64> = BTreeSet::new();
    let mut thief = Thief::default();
    // `true` if some items may be in a part that this thread's ID does not reach.
    let mut scattered = false;
    let mut fresh = 0..;
    for step in steps {
        match step {
            OfStack::Push(times) => {
                for item in fresh.by_ref().take(times.into()) {
                    match stack.push(item) {
                        Ok(()) => assert!(items.insert(item)),
                        Err(refused) => {
                            assert_eq!(refused, item);
                            let shared = shared.expect("there is no bound");
                            // A thread that gets no ID has what IDs share, and no more.
                            assert!(items.len() >= usize::from(shared), "there is room");
                        }
                    }
                    if let (Some(shared), false) = (shared, scattered) {
                        assert!(items.len() <= capacity + usize::from(shared) + BATCH, "no bound");
                    }
                }
            }
            OfStack::Pop(times) => {
                for _ in 0..times {
                    match stack.pop() {
                        Some(item) => assert!(items.remove(&item), "{item} was not there"),
                        None => {
                            assert!(items.is_empty() || scattered, "{} are there", items.len());
                            break;
                        }
                    }
                }
                let last = fresh.start;
                if stack.push(last) == Ok(()) {
                    fresh.next();
                    assert_eq!(stack.pop(), Some(last), "the item that this CPU pushed last");
                }
            }
            OfStack::Drain => {
                let before = items.len();
                let drained =
                    stack.drain(|item| assert!(items.remove(&item), "{item} comes twice"));
                assert_eq!((drained, items.len()), (before, 0));
                scattered = false;
            }
            OfStack::DrainSome(most) => {
                let mut draining = stack.drain_iter().expect("no drain runs");
                assert!(stack.drain_iter().is_none(), "a drain within a drain");
                for _ in 0..most {
                    let Some(item) = draining.next() else { break };
                    assert!(items.remove(&item), "{item} comes twice");
                }
            }
            OfStack::Steal => scattered |= can_be_stolen && thief.steal(),
            // The next ID may be the one that is free by then.
            OfStack::PutBack => {
                scattered = true;
                thief.put_back();
            }
        }
    }
    let left = stack.drain(|item| assert!(items.remove(&item), "{item} comes twice"));
    assert!(items.is_empty(), "{left} came, and {items:?} did not");
}

fn pool(pool: RawPool, can_be_stolen: bool, steps: Vec<OfPool>) {
    let layout = pool.layout();
    // The lent objects, by address, with the value that was written there.
    let mut lent: BTreeMap<usize, (NonNull<u8>, u8)> = BTreeMap::new();
    let mut thief = Thief::default();
    let mut mark = 0;
    for step in steps {
        match step {
            OfPool::Get(times) => {
                for _ in 0..times {
                    mark = u8::wrapping_add(mark, 1);
                    let object = pool.get().expect("memory");
                    check_apart(&lent, object, layout);
                    // SAFETY: the object has this layout, and is this thread's alone.
                    unsafe { object.write_bytes(mark, layout.size()) };
                    lent.insert(object.addr().get(), (object, mark));
                }
            }
            OfPool::Put(times) => {
                for _ in 0..times {
                    let Some((_, (object, mark))) = lent.pop_last() else { break };
                    // SAFETY: the object is lent to this test, and was written when it was lent.
                    let bytes =
                        unsafe { NonNull::slice_from_raw_parts(object, layout.size()).as_ref() };
                    assert!(
                        bytes.iter().all(|&byte| byte == mark),
                        "someone else has written there"
                    );
                    // SAFETY: the object is from this pool, and nothing uses it any more.
                    unsafe { pool.put(object) }.expect("it was lent");
                }
            }
            OfPool::Drain => _ = pool.drain(),
            OfPool::Steal => _ = can_be_stolen && thief.steal(),
            OfPool::PutBack => thief.put_back(),
        }
    }
    for (object, _) in lent.into_values() {
        // SAFETY: the object is from this pool, and nothing uses it any more.
        unsafe { pool.put(object) }.expect("it was lent");
    }
}

fn check_apart(lent: &BTreeMap<usize, (NonNull<u8>, u8)>, object: NonNull<u8>, layout: Layout) {
    let address = object.addr().get();
    assert!(address.is_multiple_of(layout.align()), "{layout:?} at {address:x}");
    let before = lent.range(..=address).next_back();
    let behind = lent.range(address..).next();
    let size = layout.size().max(1);
    assert!(before.is_none_or(|(other, _)| other + size <= address), "it overlaps one below");
    assert!(behind.is_none_or(|(other, _)| address + size <= *other), "it overlaps one above");
}
