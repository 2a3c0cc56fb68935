//! Tests of operations with every source, step by step and among threads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;

use super::shard::{NONE, Shard, shard_at};
use super::*;
use crate::arena::STRIDE;
use crate::field;
use crate::handle::State;
use crate::id::Source;
use crate::sys::steps::{self, Fence, Step};
use crate::sys::thread;

fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

/// Number of operations of a thread.
const OPERATIONS: i64 = if cfg!(miri) { 50 } else { 50_000 };

const SLOTS: usize = 8;

#[derive(Default)]
struct Value {
    count: Word,
    other: Word,
    slots: [Word; SLOTS],
    text: Bytes<40>,
    texts: Bytes<80>,
    list: Pointer<Item>,
}

struct Item {
    number: usize,
    next: Pointer<Item>,
}

fn item(number: usize) -> NonNull<Item> {
    NonNull::from(Box::leak(Box::new(Item { number, next: Pointer::null() })))
}

/// Frees an item that is in no list.
fn free(item: NonNull<Item>) -> usize {
    // SAFETY: `item` made it, and it is in no list any more.
    unsafe { Box::from_raw(item.as_ptr()) }.number
}

/// Numbers that look random, from a seed.
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    }
}

/// The fields of a value, as a naive model.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    count: i64,
    other: i64,
    slots: [i64; SLOTS],
    text: Vec<u8>,
}

fn read(value: &Value) -> Model {
    let mut text = vec![0; 40];
    assert!(value.text.read(0, &mut text));
    let slots = value.slots.each_ref().map(Word::load);
    Model { count: value.count.load(), other: value.other.load(), slots, text }
}

/// Random operations of one thread change exactly what a model changes, on the value that each
/// returns, and leave everything as it is where a comparison fails.
#[test]
fn each_operation_does_what_its_model_does() {
    let (count, other) = (field!(Value, count), field!(Value, other));
    for source in sources() {
        let object = PerId::with_source(source, Value::default).expect("an available source");
        let new = || Model { text: vec![0; 40], ..Model::default() };
        let mut models: HashMap<usize, Model> = HashMap::new();
        let mut random = numbers(7);
        for _ in 0..OPERATIONS.min(20_000) {
            let (a, b) = (random(3) as i64, random(3) as i64);
            let (slot, length) = (random(SLOTS as u64) as usize, random(17) as usize);
            let bytes = vec![random(256) as u8; length];
            let before = models.clone();
            let mut change = |value: &Value, change: &dyn Fn(&mut Model)| {
                change(models.entry(ptr::from_ref(value).addr()).or_insert_with(new));
            };
            let refused = match random(7) {
                6 => {
                    let (seen, value) = object.fetch_add(other, a).expect("memory");
                    change(value, &|it| {
                        assert_eq!(std::mem::replace(&mut it.other, seen + a), seen)
                    });
                    false
                }
                0 => object.add(other, a).map(|value| change(value, &|it| it.other += a)).is_err(),
                1 => {
                    let (seen, value) = object.swap(count, b).expect("memory");
                    change(value, &|it| assert_eq!(std::mem::replace(&mut it.count, b), seen));
                    false
                }
                2 => object
                    .store_if(count, a, b)
                    .map(|value| {
                        change(value, &|it| assert_eq!(std::mem::replace(&mut it.count, b), a))
                    })
                    .is_err(),
                3 => object
                    .store_both_if(count, a, b, (field!(Value, slots).at(slot), 9))
                    .map(|value| {
                        change(value, &|it| {
                            assert_eq!(it.count, a);
                            (it.count, it.slots[slot]) = (b, 9);
                        });
                    })
                    .is_err(),
                4 => object
                    .store_if_both(count, a, b, (other, 2))
                    .map(|value| {
                        change(value, &|it| {
                            assert_eq!((it.count, it.other), (a, 2));
                            it.count = b;
                        });
                    })
                    .is_err(),
                _ => object
                    .copy_then_store_if(count, a, b, (field!(Value, text), slot), &bytes)
                    .map(|value| {
                        change(value, &|it| {
                            assert_eq!(it.count, a);
                            it.count = b;
                            it.text[slot..slot + length].copy_from_slice(&bytes);
                        });
                    })
                    .is_err(),
            };
            assert!(!refused || before == models);
            for (id, value) in object.iter() {
                let model = models.get(&ptr::from_ref(value).addr()).cloned().unwrap_or_else(new);
                assert_eq!(read(value), model, "{source} {id:?}");
                assert_eq!(object.id_of(value), id, "{source}");
                assert!(id.is_none_or(|id| ptr::eq(object.get(id).expect("it has one"), value)));
            }
        }
        assert!(!models.is_empty());
    }
}

#[test]
fn a_failed_comparison_says_what_it_saw() {
    let (count, other) = (field!(Value, count), field!(Value, other));
    for source in sources() {
        let object = PerId::with_source(source, Value::default).expect("an available source");
        assert_eq!(object.store_if(count, 5, 1).err(), Some(Unchanged::Differs(0)), "{source}");
        let both =
            |expected, beside| object.store_if_both(count, expected, 1, (other, beside)).err();
        assert_eq!(both(5, 5), Some(Unchanged::Differs(0)), "{source}");
        assert_eq!(both(0, 5), Some(Unchanged::OtherDiffers(0)), "{source}");
        assert_eq!(both(0, 0), None, "{source}");
        let text = field!(Value, text);
        let copied = |start| object.copy_then_store_if(other, 0, 0, (text, start), &[1; 8]).err();
        assert_eq!(copied(32), None, "{source}");
        assert_eq!(copied(33), Some(Unchanged::TooLong), "{source}");
        assert_eq!(copied(usize::MAX), Some(Unchanged::TooLong), "{source}");
    }
}

/// Threads move items between lists while a visitor takes whole lists out.
#[test]
fn no_item_of_a_list_is_lost_or_doubled() {
    const THREADS: usize = 4;
    const ITEMS: usize = OPERATIONS as usize / 2;
    let (head, next) = (field!(Value, list), field!(Item, next));
    for source in sources() {
        let object = PerId::with_source(source, Value::default).expect("an available source");
        let seen: Vec<AtomicUsize> = (0..THREADS * ITEMS).map(|_| AtomicUsize::new(0)).collect();
        let count = |item| _ = seen[free(item)].fetch_add(1, Relaxed);
        let take_list = |mut first: *mut Item| {
            while let Some(item) = NonNull::new(first) {
                // SAFETY: the list was taken out, so its items are this thread's.
                first = unsafe { item.as_ref() }.next.load();
                count(item);
            }
        };
        let working = AtomicUsize::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (object, working, count, take_list) = (&object, &working, &count, &take_list);
                scope.spawn(move || {
                    for number in 0..ITEMS {
                        // SAFETY: a fresh item; all items use this field.
                        unsafe { object.push(head, item(thread * ITEMS + number), next) }
                            .expect("memory");
                        if number % 2 == 0 {
                            // SAFETY: all items were pushed with this field.
                            let popped = unsafe { object.pop(head, next) }.expect("memory");
                            popped.into_iter().for_each(count);
                        }
                        if number % 1000 == 0 {
                            take_list(object.swap(head, ptr::null_mut()).expect("memory").0);
                        }
                    }
                    working.fetch_sub(1, Relaxed);
                });
            }
            let visit = || {
                object.visit().for_each(|value| {
                    let first = value.list.load();
                    value.list.store(ptr::null_mut());
                    take_list(first);
                });
            };
            while working.load(Relaxed) > 0 {
                visit();
                std::thread::yield_now();
            }
        });
        for value in object.visit() {
            take_list(value.list.load());
        }
        let wrong = seen.iter().filter(|times| times.load(Relaxed) != 1).count();
        assert_eq!(wrong, 0, "{source}");
    }
}

/// A slot is published by the number of slots, one of two texts by its version: whoever holds the
/// value finds them whole. An operation that is interrupted may leave a part of the other text.
#[test]
fn what_is_published_is_whole() {
    let (used, slots) = (field!(Value, count), field!(Value, slots));
    let (version, texts) = (field!(Value, other), field!(Value, texts));
    let start = |version: i64| 40 * (version % 2) as usize;
    for source in sources() {
        let object = PerId::with_source(source, Value::default).expect("an available source");
        let done = AtomicBool::new(false);
        let published = AtomicUsize::new(0);
        let check = |value: &Value| {
            let used = value.count.load() as usize;
            let slots: Vec<i64> = value.slots[..used].iter().map(Word::load).collect();
            assert_eq!(slots, (1..=used as i64).collect::<Vec<_>>(), "{source}");
            let mut bytes = [0; 40];
            let version = value.other.load();
            assert!(value.texts.read(start(version), &mut bytes));
            assert_eq!(bytes, [version as u8; 40], "{source}");
            used
        };
        std::thread::scope(|scope| {
            let workers = (0..3).map(|_| {
                scope.spawn(|| {
                    for _ in 0..OPERATIONS {
                        let now = object.current().map_or(0, |value| value.count.load());
                        let slot = now as usize;
                        let stored = if slot < SLOTS {
                            object
                                .store_both_if(used, now, now + 1, (slots.at(slot), now + 1))
                                .is_ok()
                        } else {
                            false
                        };
                        published.fetch_add(usize::from(stored), Relaxed);
                        let now = object.current().map_or(0, |value| value.other.load());
                        let bytes = [(now + 1) as u8; 40];
                        let to = (texts, start(now + 1));
                        let _ = object.copy_then_store_if(version, now, now + 1, to, &bytes);
                    }
                })
            });
            let workers: Vec<_> = workers.collect();
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    for value in object.visit() {
                        let used = check(&value);
                        value.count.store(0);
                        published.fetch_sub(used, Relaxed);
                    }
                    std::thread::yield_now();
                }
            });
            workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
            done.store(true, Relaxed);
        });
        let left: usize = object.visit().map(|value| check(&value)).sum();
        assert_eq!(left, published.load(Relaxed), "{source}");
    }
}

#[test]
fn no_addition_is_lost_while_values_are_taken_away() {
    for source in sources() {
        let object = PerId::with_source(source, || Word::new(0)).expect("an available source");
        let working = AtomicUsize::new(4);
        let mut taken = 0;
        let take = || {
            object.visit().map(|value| {
                let n = value.load();
                value.store(0);
                n
            })
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..OPERATIONS {
                        object.add(Field::whole(), 1).expect("memory");
                    }
                    working.fetch_sub(1, Relaxed);
                });
            }
            while working.load(Relaxed) > 0 {
                taken += take().sum::<i64>();
                crate::compact_ids();
            }
        });
        taken += take().sum::<i64>();
        assert_eq!(taken, 4 * OPERATIONS, "{source}");
    }
}

#[test]
fn operations_of_a_visitor_use_other_values() {
    for source in sources() {
        let object = PerId::with_source(source, || Word::new(0)).expect("an available source");
        object.add(Field::whole(), 1).expect("memory");
        let visit = object.visit();
        let held: Vec<_> = visit.collect();
        assert!(!held.is_empty());
        let value = object.add(Field::whole(), 10).expect("memory");
        assert!(held.iter().all(|held| !ptr::eq(&raw const **held, value)), "{source}");
        drop(held);
        assert_eq!(object.iter().map(|(_, word)| word.load()).sum::<i64>(), 11, "{source}");
    }
}

#[test]
fn a_visit_inside_a_visit_is_empty() {
    let object = PerId::new(|| Word::new(0));
    object.add(Field::whole(), 1).expect("memory");
    let held: Vec<_> = object.visit().collect();
    object.add(Field::whole(), 1).expect("memory");
    drop(held);
    let visit = object.visit();
    let mut inner = object.visit();
    assert_eq!((inner.by_ref().count(), inner.missed()), (0, object.iter().count()));
    drop((visit, inner));
    assert!(object.visit().count() > 0);
}

/// Returns the number of values that a visit reaches, and of those that it misses.
fn reached_and_missed(object: &PerId<Word>) -> (usize, usize) {
    let mut visit = object.visit();
    (visit.by_ref().count(), visit.missed())
}

fn one_word(source: Source) -> PerId<Word> {
    let zero: fn() -> Word = || Word::new(0);
    let object = PerId::with_source(source, zero).expect("an available source");
    object.add(Field::whole(), 1).expect("memory");
    object
}

#[test]
fn a_visit_counts_what_it_misses() {
    for source in sources() {
        let object = one_word(source);
        assert_eq!(reached_and_missed(&object), (1, 0), "{source}");
        let held: Vec<_> = object.visit().collect();
        object.add(Field::whole(), 1).expect("memory");
        assert_eq!(reached_and_missed(&object), (1, 1), "{source}");
        drop(held);
        let of_ids = object.iter().filter(|(id, _)| id.is_some()).count();
        let sections = if source == Source::Atomic { 0 } else { of_ids };
        let refusing = steps::watch(|step| {
            (step == Step::Membarrier(Fence::OfAll)).then_some(Err(steps::REFUSED))
        });
        assert_eq!(reached_and_missed(&object), (2 - sections, sections), "{source}");
        drop(refusing);
        assert_eq!(reached_and_missed(&object), (2, 0), "{source}");
    }
}

/// One ID's value is held, and no other; what cannot be held is told.
#[test]
fn the_value_of_one_id_is_held() {
    for source in sources() {
        let object = one_word(source);
        assert_eq!(object.hold(u32::MAX).err(), Some(Missed::NoValue), "{source}");
        let Some((Some(id), _)) = object.iter().next() else { continue };
        let held = object.hold(id).expect("no other thread has it");
        assert_eq!((held.id(), held.load()), (Some(id), 1), "{source}");
        assert_eq!(object.hold(id).err(), Some(Missed::InUse), "{source}");
        let other = object.add(Field::whole(), 10).expect("memory");
        assert!(!ptr::eq(&raw const *held, other), "{source}");
        held.store(5);
        drop(held);
        let visit = object.visit();
        assert_eq!(object.hold(id).expect("the visit has not reached it").load(), 5, "{source}");
        drop(visit);
        let refusing = steps::watch(|step| {
            (step == Step::Membarrier(Fence::OfAll)).then_some(Err(steps::REFUSED))
        });
        let refused = object.hold(id).err();
        drop(refusing);
        if source != Source::Atomic {
            assert!(matches!(refused, Some(Missed::Refused(_))), "{source}");
        }
        assert_eq!(object.hold(id).expect("it is ready again").load(), 5, "{source}");
    }
    assert_eq!(PerId::new(|| Word::new(0)).hold(0).err(), Some(Missed::NoValue));
}

/// No addition is lost or seen twice while the values of single IDs are taken away: sections that
/// were running are done or aborted before a value is held.
#[test]
fn every_number_is_returned_once_while_ids_are_held() {
    const ADDITIONS: usize = if cfg!(miri) { 50 } else { 50_000 };
    for source in sources() {
        let object = one_word(source);
        let (object, done) = (&object, &AtomicBool::new(false));
        let mut seen = std::thread::scope(|scope| {
            let add = move || {
                let each = |_| object.fetch_add(Field::whole(), 1).expect("memory");
                let place = |(before, word)| (ptr::from_ref::<Word>(word).addr(), before);
                (0..ADDITIONS).map(each).map(place).collect::<Vec<_>>()
            };
            let adding = [(), (), ()].map(|()| scope.spawn(add));
            let holding = scope.spawn(move || {
                for id in (0..8).cycle().take_while(|_| !done.load(Relaxed)) {
                    if let Ok(word) = object.hold(id) {
                        let now = word.load();
                        std::thread::yield_now();
                        assert_eq!(word.load(), now, "{source}: a value that is held has changed");
                    }
                }
            });
            let seen = adding.map(|thread| thread.join().expect("no panic")).concat();
            done.store(true, Relaxed);
            holding.join().expect("no panic");
            seen
        });
        seen.sort_unstable();
        assert!(seen.windows(2).all(|two| two[0] != two[1]), "{source}: returned twice");
        let sum: i64 = object.iter().map(|(_, word)| word.load()).sum();
        assert_eq!(sum, 1 + 3 * ADDITIONS as i64, "{source}");
    }
}

#[test]
fn a_visit_fences_once_for_64_ids_and_none_is_held_if_that_is_refused() {
    let Ok(object) = PerId::with_source(Source::Table, || Word::new(0)) else { return };
    object.add(Field::whole(), 1).expect("memory");
    let fences = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&fences);
    let watching = steps::watch(move |step| {
        (step == Step::Membarrier(Fence::OfAll)).then(|| counted.fetch_add(1, Relaxed))?;
        Some(Err(steps::REFUSED))
    });
    assert!(object.visit().all(|held| held.id().is_none()));
    assert!(fences.load(Relaxed) > 0);
    drop(watching);
    object.add(Field::whole(), 1).expect("memory");
    let sum: i64 = object.visit().map(|value| value.load()).sum();
    assert_eq!(sum, 2, "the shards are ready again");
}

#[test]
fn values_are_made_once_and_dropped_once() {
    struct Counted(Word, Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Relaxed);
        }
    }
    for source in sources() {
        let alive = Arc::new(AtomicUsize::new(0));
        let make = || {
            alive.fetch_add(1, Relaxed);
            Counted(Word::new(0), Arc::clone(&alive))
        };
        let object = PerId::with_source(source, make).expect("an available source");
        let word = field!(Counted, 0);
        object.add(word, 1).expect("memory");
        let held: Vec<_> = object.visit().collect();
        object.add(word, 1).expect("memory");
        drop(held);
        assert_eq!(alive.load(Relaxed), object.iter().count(), "{source}");
        drop(object);
        assert_eq!(alive.load(Relaxed), 0, "{source}");
    }
}

#[test]
fn a_value_whose_maker_panics_is_made_by_the_next_operation() {
    for source in sources() {
        let panics = AtomicBool::new(true);
        let make = || {
            assert!(!panics.load(Relaxed), "in the maker");
            Word::new(0)
        };
        let object = PerId::with_source(source, make).expect("an available source");
        let add = || object.add(Field::whole(), 1).map(Word::load);
        assert!(catch_unwind(AssertUnwindSafe(add)).is_err());
        assert_eq!(object.iter().count(), 0, "{source}");
        let State::Claimed(block, Some(source)) = object.handle.state() else { panic!("{source}") };
        for id in 0..source.id_count() {
            // SAFETY: the block of this object; the memory of every ID that was used is open.
            let state = unsafe { shard_at::<Word>(block.of_id(id)) }.state();
            assert_eq!(state, NONE, "{source}: ID {id}");
        }
        panics.store(false, Relaxed);
        assert_eq!(add(), Ok(1), "{source}");
    }
}

#[test]
#[cfg_attr(
    not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))),
    ignore = "mappings are refused on Linux only"
)]
fn without_memory_nothing_is_done() {
    let object = PerId::new(|| Word::new(0));
    let watching = steps::watch(|step| {
        matches!(step, Step::Claim(_) | Step::Map(_)).then_some(Err(steps::REFUSED))
    });
    assert_eq!(object.add(Field::whole(), 1).err(), Some(NoMemory));
    assert_eq!(object.store_if(Field::whole(), 0, 1).err(), Some(Unchanged::NoMemory));
    drop(watching);
    assert_eq!(object.add(Field::whole(), 1).map(Word::load), Ok(1));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn an_object_and_a_value_have_the_stated_size() {
    assert_eq!(size_of::<PerId<Word>>(), 24 + size_of::<fn() -> Word>());
    assert_eq!(size_of::<shard::Shard<[Word; 7]>>(), 8 + size_of::<[Word; 7]>());
}

thread_local! {
    /// The object that [`make_with_uses`] uses.
    static IN_MAKER: RefCell<Option<Rc<PerId<Word>>>> = const { RefCell::new(None) };
}

/// Makes a value. The first call uses the object, reads it and visits it before that.
fn make_with_uses() -> Word {
    if let Some(object) = IN_MAKER.take() {
        assert_eq!(object.iter().count(), 0);
        let (values, waits) = count(|step| step == Step::Wait, || object.visit().count());
        assert_eq!((values, waits), (0, 0));
        object.add(Field::whole(), 10).expect("memory");
    }
    Word::new(100)
}

/// While a value is made, the thread that makes it finds none, and its operations use another.
#[test]
fn a_value_is_not_seen_before_it_is_made() {
    for source in sources() {
        let make = make_with_uses as fn() -> Word;
        let object = Rc::new(PerId::with_source(source, make).expect("an available source"));
        IN_MAKER.set(Some(Rc::clone(&object)));
        object.add(Field::whole(), 1).expect("memory");
        let values: Vec<i64> = object.iter().map(|(_, word)| word.load()).collect();
        assert!(values.len() > 1, "{source}: {values:?}");
        assert_eq!(values.iter().sum::<i64>(), 100 * values.len() as i64 + 11, "{source}");
    }
}

/// Returns the result of `body`, and the number of its steps for which `is_counted` returns `true`.
fn count<R>(is_counted: fn(Step) -> bool, body: impl FnOnce() -> R) -> (R, usize) {
    let counted = Rc::new(RefCell::new(0));
    let counter = Rc::clone(&counted);
    let watching = steps::watch(move |step| {
        *counter.borrow_mut() += usize::from(is_counted(step));
        None
    });
    let result = body();
    drop(watching);
    (result, counted.take())
}

/// Lets the calling thread use `id` in its next operations with the atomic source.
fn use_id(id: u32) {
    // SAFETY: the block is this thread's own.
    let block = unsafe { &mut *thread::own() };
    (block.hint, block.hint_left, block.copy) = (id, 64, 0);
}

#[test]
fn the_values_of_the_first_and_the_last_id_are_made_and_dropped() {
    let alive = Arc::new(());
    let object = PerId::with_source(Source::Atomic, || (Word::new(0), Arc::clone(&alive)));
    let object = object.expect("memory");
    for id in [0, Source::Atomic.id_count().saturating_sub(1)] {
        use_id(id);
        object.add(field!((Word, Arc<()>), 0), 1).expect("memory");
        assert!(object.get(id).is_some(), "{id}");
    }
    assert_eq!(Arc::strong_count(&alive), 1 + object.iter().count());
    drop(object);
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// A value without a size may have any address.
#[test]
fn only_places_of_values_have_an_id() {
    for source in sources() {
        let object = PerId::with_source(source, || ()).expect("an available source");
        let State::Claimed(block, _) = object.handle.state() else { panic!("{source}") };
        assert!(source.ensure_id());
        let id_of = |shard: usize| {
            let address = shard + Shard::<()>::VALUE;
            // SAFETY: a value without a size at an address that is not 0.
            object.id_of(unsafe { &*ptr::without_provenance(address) })
        };
        // Another thread may use a new ID in between.
        let (count, beyond) = loop {
            let count = source.id_count();
            let beyond = (id_of(block.of_id(count - 1) + STRIDE), object.get(count));
            if source.id_count() == count {
                break (count, beyond);
            }
        };
        assert_eq!(beyond, (None, None), "{source}");
        for id in [0, count - 1] {
            let shard = block.of_id(id);
            assert_eq!(id_of(shard), Some(id), "{source}");
            assert_eq!([id_of(shard - 8), id_of(shard + 8)], [None; 2], "{source}");
        }
        assert_eq!(id_of(block.0), None, "{source}: the slot that belongs to no ID");
        assert_eq!(PerId::new(|| ()).id_of(&()), None, "{source}: never used");
    }
}

#[test]
fn a_visit_does_not_wait_for_values_that_its_thread_holds() {
    for source in sources() {
        let object = PerId::with_source(source, || Word::new(0)).expect("an available source");
        object.add(Field::whole(), 1).expect("memory");
        let mut held: Vec<_> = object.visit().collect();
        // The second one is of no ID.
        object.add(Field::whole(), 1).expect("memory");
        held.extend(object.visit());
        assert_eq!(held.len(), 2, "{source}");
        let (values, waits) = count(|step| step == Step::Wait, || object.visit().count());
        assert_eq!((values, waits), (0, 0), "{source}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "it waits for a second")]
fn a_visit_waits_for_values_that_another_thread_holds_but_not_forever() {
    for source in sources() {
        let object = PerId::with_source(source, || Word::new(0)).expect("an available source");
        object.add(Field::whole(), 1).expect("memory");
        let (hold, is_held) = mpsc::channel();
        let (end, must_end) = mpsc::channel();
        let (release, is_released) = mpsc::channel();
        std::thread::scope(|scope| {
            let object = &object;
            scope.spawn(move || {
                let held: Vec<_> = object.visit().collect();
                hold.send(held.len()).expect("a receiver");
                let () = must_end.recv().expect("a sender");
                drop(held);
                release.send(()).expect("a receiver");
            });
            assert_eq!(is_held.recv(), Ok(1), "{source}");
            let (values, waits) = count(|step| step == Step::Wait, || object.visit().count());
            assert!(values == 0 && waits > 0, "{source}: {values} values, {waits} waits");
            let mut end = Some(end);
            let watching = steps::watch(move |step| {
                if let Some(end) = end.take_if(|_| step == Step::Wait) {
                    end.send(()).expect("a receiver");
                    is_released.recv().expect("a sender");
                }
                None
            });
            assert_eq!(object.visit().count(), 1, "{source}");
            drop(watching);
        });
    }
}

#[test]
fn a_visit_fences_only_if_it_takes_values_from_sections() {
    let is_fence = |step| step == Step::Membarrier(Fence::OfAll);
    for source in sources() {
        let object = PerId::with_source(source, || Word::new(0)).expect("an available source");
        assert_eq!(count(is_fence, || object.visit().count()), (0, 0), "{source}: unused");
        object.add(Field::whole(), 1).expect("memory");
        let has_id = object.iter().any(|(id, _)| id.is_some());
        let fences = usize::from(has_id && source != Source::Atomic);
        assert_eq!(count(is_fence, || object.visit().count()), (1, fences), "{source}");
    }
}

#[test]
fn a_value_that_belongs_to_no_id_is_used_again() {
    for source in sources() {
        let object = PerId::with_source(source, || Word::new(0)).expect("an available source");
        object.add(Field::whole(), 1).expect("memory");
        let held: Vec<_> = object.visit().collect();
        (0..100).for_each(|_| _ = object.add(Field::whole(), 1).expect("memory"));
        let of_no_id = object.iter().filter(|(id, _)| id.is_none()).count();
        assert!(of_no_id <= 1 + held.len(), "{source}: {of_no_id} values of no ID");
    }
}

#[test]
fn the_current_value_is_the_one_that_operations_use() {
    for source in sources() {
        let object = PerId::with_source(source, || Word::new(0)).expect("an available source");
        assert!(object.current().is_none(), "{source}");
        let is_current = || {
            let value = object.add(Field::whole(), 1).expect("memory");
            object.current().is_some_and(|current| ptr::eq(current, value))
        };
        assert!((0..1000).any(|_| is_current()), "{source}");
    }
}

#[test]
fn an_empty_list_has_no_first_item() {
    let (head, next) = (field!(Value, list), field!(Item, next));
    for source in sources() {
        let object = PerId::with_source(source, Value::default).expect("an available source");
        // SAFETY: nothing was pushed.
        assert_eq!(unsafe { object.pop(head, next) }, Ok(None), "{source}");
        // SAFETY: as above.
        assert_eq!(unsafe { object.pop(head, next) }, Ok(None), "{source}: and with a value");
    }
}

#[test]
fn bytes_are_read_to_the_end_and_no_further() {
    type Log = (Word, Bytes<16>);
    let logs = PerId::new(|| (Word::new(0), Bytes::<16>::new()));
    let (word, to) = (field!(Log, 0), (field!(Log, 1), 12));
    let (_, bytes) = logs.copy_then_store_if(word, 0, 1, to, &[1, 2, 3, 4]).expect("memory");
    let mut read = [9; 4];
    assert!(bytes.read(12, &mut read));
    assert_eq!(read, [1, 2, 3, 4]);
    assert!(!bytes.read(13, &mut read) && !bytes.read(usize::MAX, &mut read));
    assert_eq!(read, [1, 2, 3, 4], "without effect");
    assert!(bytes.read(10, &mut read));
    assert_eq!(read, [0, 0, 1, 2]);
}

#[test]
fn an_element_of_an_array_lies_behind_those_before_it() {
    let slots = field!(Value, slots);
    let value = Value::default();
    for (index, slot) in value.slots.iter().enumerate() {
        assert!(ptr::eq(slots.at(index).of(&value), slot));
    }
    assert!(catch_unwind(|| slots.at(SLOTS)).is_err());
}
