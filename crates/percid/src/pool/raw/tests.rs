//! Tests of untyped pools: misuse, drains, bounds, and threads.

use std::collections::HashSet;
use std::sync::atomic::AtomicU32;

use super::slab::Header;
use super::*;
use crate::sys::steps::{self, Step};

fn pool(size: usize, align: usize) -> RawPool {
    RawPool::new(Layout::from_size_align(size, align).expect("a layout"), 16)
}

fn get(pool: &RawPool) -> NonNull<u8> {
    pool.get().expect("memory")
}

#[test]
#[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
fn objects_are_zeroed_aligned_and_apart() {
    for (size, align) in [(0, 1), (1, 1), (24, 8), (64, 64), (100, 4096), (200_000, 16)] {
        let pool = pool(size, align);
        let mut ranges: Vec<usize> = Vec::new();
        for _ in 0..50 {
            let object = get(&pool).as_ptr();
            assert_eq!(object.addr() % align, 0);
            // SAFETY: the object has `size` bytes.
            unsafe {
                assert!((0..size).all(|byte| object.add(byte).read() == 0));
                object.write_bytes(0xff, size);
            }
            ranges.push(object.addr());
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0] + size <= pair[1] && pair[0] < pair[1]));
    }
}

/// Another thread maps a slab while this one does: each object that is cut comes from a slab
/// that is full before the next is mapped.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
#[test]
#[cfg_attr(miri, ignore = "it asks the kernel")]
fn a_lost_race_for_a_slab_wastes_none() {
    let pool: &RawPool = Box::leak(Box::new(pool(1000, 8)));
    let watching = steps::watch(|step| {
        if step == Step::Map(pool.slab_bytes()) {
            pool.get_new().expect("memory");
        }
        None
    });
    let slabs = || pool.slabs().len() as u32;
    (0..20 * pool.per_slab()).for_each(|_| _ = pool.get_new().expect("memory"));
    drop(watching);
    assert!((20..=22).contains(&slabs()), "{} slabs for the objects of 20", slabs());
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    let other = pool(32, 8);
    // The thread stays on the same CPU except at the end of a time slice, which comes after
    // hundreds of attempts. If it were every second attempt, all would fail once in 2^100.
    let again = (0..100).any(|_| {
        let one = pool(32, 8);
        let object = get(&one);
        // SAFETY: the pointers came from pools, and no thread uses the objects.
        unsafe {
            assert_eq!(other.put(object), Err(PutError::WrongPool));
            assert_eq!(one.put(object), Ok(()));
            assert_eq!(one.put(object), Err(PutError::DoublePut));
            assert_eq!(other.put(object), Err(PutError::WrongPool));
            let (first, second) = (get(&one), get(&one));
            assert!(first != second, "it was there once only");
            drop(one);
            assert_eq!(other.put(object), Err(PutError::Gone));
            first == object
        }
    });
    assert!(again, "an object that was put back is not lent again");
}

/// Memory that a pool cannot free stays in use: Linux refuses to drop locked memory.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
#[test]
#[cfg_attr(miri, ignore = "it asks the kernel")]
fn a_slab_that_the_kernel_keeps_is_used_again() {
    let pool = pool(1000, 8);
    let objects: HashSet<_> = (0..20).map(|_| get(&pool)).collect();
    let slab = pool.slabs().remove(0);
    let start = ptr::with_exposed_provenance::<libc::c_void>(slab.start);
    // SAFETY: memory of the pool.
    if unsafe { libc::mlock(start, slab.len()) } != 0 {
        return percid_skips::not_checked("a pool of locked memory", "no memory can be locked");
    }
    // SAFETY: the objects came from this pool and no thread uses them.
    objects.iter().for_each(|&object| unsafe { pool.put(object) }.expect("it was lent"));
    assert_eq!(pool.drain(), 0);
    let cut_before = pool.slabs().len();
    let again: HashSet<_> = (0..20).map(|_| get(&pool)).collect();
    assert!(!again.is_disjoint(&objects), "they are gone");
    let all: HashSet<_> = again.union(&objects).collect();
    let more: HashSet<_> = (0..20).map(|_| get(&pool)).collect();
    assert!(more.is_disjoint(&again), "lent twice");
    assert_eq!(pool.slabs().len(), 1, "the rest of the slab is lost");
    let more: HashSet<_> = (0..100).map(|_| get(&pool)).collect();
    assert!(more.iter().all(|object| !again.contains(object)), "lent twice");
    assert!(cut_before == 1 && all.len() < 40);
    // SAFETY: memory of the pool.
    unsafe { libc::munlock(start, slab.len()) };
}

fn bounded(shared: usize) -> RawPool {
    RawPool::bounded(Layout::from_size_align(1000, 8).expect("a layout"), 1, shared)
}

/// Lends as many objects as `slabs` slabs have, and fills them.
fn get_slabs(pool: &RawPool, slabs: u32) -> Vec<NonNull<u8>> {
    let objects: Vec<_> = (0..slabs * pool.per_slab()).map(|_| get(pool)).collect();
    // SAFETY: the objects have 1000 bytes, and belong to this thread.
    objects.iter().for_each(|object| unsafe { object.write_bytes(0xff, 1000) });
    objects
}

fn put(pool: &RawPool, object: NonNull<u8>) {
    // SAFETY: the objects of these tests came from the pool and no thread uses them.
    unsafe { pool.put(object) }.expect("it was lent");
}

/// Returns the number of objects whose memory was freed.
fn gone(objects: &[NonNull<u8>]) -> usize {
    // SAFETY: slabs stay mapped.
    objects.iter().filter(|object| unsafe { object.read() } == 0).count()
}

#[test]
#[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
fn what_a_bounded_pool_has_no_room_for_goes_back_with_its_slab() {
    let pool = bounded(0);
    let objects = get_slabs(&pool, 4);
    objects.iter().for_each(|&object| put(&pool, object));
    // Every ID keeps one, and the list about a batch, of the slabs that were put first.
    let at_once = gone(&objects);
    assert!(at_once >= 2 * pool.per_slab() as usize, "{at_once}");
    // SAFETY: the object came from the pool and no thread uses it.
    let again = unsafe { pool.put(objects[0]) };
    assert!(matches!(again, Err(PutError::DoublePut | PutError::Gone)), "{again:?}");
    assert_eq!(pool.drain() + at_once, objects.len());
    assert_eq!(gone(&objects), objects.len());
    // The slabs are reused.
    let again: HashSet<_> = get_slabs(&pool, 4).into_iter().collect();
    assert_eq!((again.len(), pool.slabs().len()), (objects.len(), 4));
}

#[test]
#[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
fn a_slab_stays_as_long_as_one_of_its_objects_is_lent() {
    let pool = bounded(0);
    let objects = get_slabs(&pool, 3);
    // One or two objects of each slab; the test does not know the borders of the slabs.
    let kept: Vec<_> = objects.iter().copied().step_by(pool.per_slab() as usize / 2).collect();
    let others = objects.iter().filter(|object| !kept.contains(object));
    others.for_each(|&object| put(&pool, object));
    pool.drain();
    assert_eq!((gone(&kept), gone(&objects)), (0, 0));
    kept.iter().for_each(|&object| put(&pool, object));
    pool.drain();
    assert_eq!(gone(&objects), objects.len());
}

/// One thread gets objects and others put them, without end, in a bounded number of slabs.
#[test]
#[cfg_attr(miri, ignore = "its objects take Miri some minutes")]
fn a_bounded_pool_stays_bounded_where_one_gets_and_others_put() {
    const LENT: u64 = 0x1e27;
    let pool = bounded(20);
    let (sender, receiver) = std::sync::mpsc::sync_channel::<usize>(100);
    let receiver = std::sync::Mutex::new(receiver);
    let word = |object: usize| {
        // SAFETY: an object of the pool, larger than this and aligned.
        unsafe { &*ptr::with_exposed_provenance::<AtomicU64>(object) }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = receiver.lock().expect("no panic").recv();
                    let Ok(object) = next else { break };
                    assert_eq!(word(object).swap(0, Relaxed), LENT);
                    put(
                        &pool,
                        NonNull::new(ptr::with_exposed_provenance_mut(object)).expect("one"),
                    );
                }
            });
        }
        let pool = &pool;
        scope.spawn(move || {
            for round in 0..40_000 {
                let object = get(pool).as_ptr().expose_provenance();
                assert_eq!(word(object).swap(LENT, Relaxed), 0, "lent twice, {round}");
                sender.send(object).expect("a receiver");
            }
            assert!(pool.slabs().len() < 40, "{} slabs", pool.slabs().len());
        });
    });
}

/// No machine has enough memory for eight of these.
#[test]
#[cfg_attr(miri, ignore = "Miri gives up where there is no memory")]
fn errno_is_left_alone_where_there_is_no_memory() {
    use crate::sys::{errno, set_errno};

    let pool = pool(MAX_SIZE, 8);
    set_errno(33);
    let object = pool.get();
    assert_eq!(errno(), 33);
    if object.is_some() {
        percid_skips::not_checked("a pool without memory", "the kernel promises any memory");
    }
}

/// An object is marked idle before another thread can get it: otherwise that thread's mark
/// would be overwritten.
#[test]
#[cfg_attr(miri, ignore = "its pool stays, which is a leak")]
fn an_object_is_marked_before_it_is_pushed() {
    let pool: &'static RawPool = Box::leak(Box::new(pool(32, 8)));
    let object = get(pool);
    let mark = header(object).addr();
    let seen = std::rc::Rc::new(std::cell::Cell::new(0));
    let note = std::rc::Rc::clone(&seen);
    let _watching = steps::watch(move |step| {
        if let Step::Insert(_) = step {
            // SAFETY: headers can be read at any time.
            note.set(unsafe { (*ptr::with_exposed_provenance::<Header>(mark)).mark });
        }
        None
    });
    // Until the push has activated a shard, for which it needs an ID.
    while seen.get() == 0 {
        // SAFETY: the object came from this pool, and no thread uses it.
        unsafe { pool.put(object) }.expect("it was lent");
        pool.idle.drain(drop);
        // SAFETY: the object came from this pool, and no thread uses it.
        unsafe { (*header(object)).mark = pool.lent() };
    }
    assert_eq!(seen.get(), pool.idle_mark());
}

#[test]
fn a_drain_gives_back_slabs_that_nobody_uses() {
    let pool = pool(1000, 8);
    let objects: Vec<_> = (0..500).map(|_| get(&pool)).collect();
    let put = |object| {
        // SAFETY: the objects came from this pool and no thread uses them.
        unsafe { pool.put(object) }
    };
    objects[1..].iter().for_each(|&object| put(object).expect("it was lent"));
    let freed = pool.drain();
    assert!((300..500).contains(&freed), "{freed}: all but the slab of the one object");
    let misuse: HashSet<_> = objects[1..].iter().filter_map(|&it| put(it).err()).collect();
    assert!(misuse.contains(&PutError::Gone) && !misuse.contains(&PutError::WrongPool));
    put(objects[0]).expect("it was lent");
    assert_eq!(freed + pool.drain(), 500);
    // The same again, in the existing slabs.
    let slabs = |pool: &RawPool| {
        let mut slab = pool.slabs.load(Relaxed);
        // SAFETY: slabs stay forever.
        std::iter::from_fn(move || unsafe { slab.as_ref().inspect(|it| slab = it.older).map(drop) })
            .count()
    };
    let before = slabs(&pool);
    assert_eq!((0..500).map(|_| get(&pool)).collect::<HashSet<_>>().len(), 500);
    assert_eq!(slabs(&pool), before);
}

#[test]
fn no_object_is_lent_to_two() {
    const LOANS: usize = if cfg!(miri) { 100 } else { 20_000 };
    const DRAINS: usize = if cfg!(miri) { 10 } else { 50 };
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let layout = Layout::new::<[AtomicU32; 16]>();
        let pool = RawPool::with_source(source, layout, 8).expect("an available source");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..LOANS {
                        let objects = [get(&pool), get(&pool)];
                        for object in objects {
                            // SAFETY: zeroed memory of this layout, or the value that was
                            // stored below.
                            let users = unsafe { object.cast::<AtomicU32>().as_ref() };
                            assert_eq!(users.fetch_add(1, Relaxed), 0, "{source}");
                            users.store(0, Relaxed);
                            // SAFETY: it came from this pool and is not used any more.
                            unsafe { pool.put(object) }.expect("it was lent");
                        }
                    }
                });
            }
            (0..DRAINS).for_each(|_| _ = pool.drain());
        });
    }
}

#[test]
fn slabs_are_the_memory_of_their_pool_and_percids_own() {
    let (pool, other) = (pool(1 << 15, 8), pool(8, 8));
    assert_eq!(pool.slabs(), []);
    let objects: Vec<_> = (0..20).map(|_| get(&pool).addr().get()).collect();
    let elsewhere = get(&other).addr().get();
    let slabs = pool.slabs();
    assert!(slabs.len() > 1);
    for object in objects {
        let end = object + (1 << 15);
        assert!(slabs.iter().any(|slab| slab.start < object && end <= slab.end));
        assert_eq!(crate::own_memory_in(&(object..end)), Some(object));
    }
    assert!(!slabs.iter().any(|slab| slab.contains(&elsewhere)));
    let known: Vec<_> = slab::all_slabs().collect();
    assert!(slabs.iter().all(|slab| known.contains(slab)));
}

/// The kernel does not take locked memory back: what headers say is erased in another way.
#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(any(miri, percid_elsewhere))))]
fn a_destroyed_pool_has_no_objects_in_locked_memory_either() {
    let pool = pool(8, 8);
    let object = get(&pool);
    let slab = pool.slabs().remove(0);
    let place = std::ptr::with_exposed_provenance(slab.start);
    // SAFETY: the memory is the pool's.
    if unsafe { libc::mlock(place, slab.len()) } != 0 {
        return percid_skips::not_checked(
            "pools in locked memory",
            "the kernel refuses to lock it",
        );
    }
    let header = slab::header(object).cast::<u64>();
    // SAFETY: slabs stay mapped forever, and headers are aligned to their words.
    let words = || unsafe { [header.read_volatile(), header.add(1).read_volatile()] };
    assert_ne!(words(), [0; 2]);
    drop(pool);
    assert_eq!(words(), [0; 2]);
    // SAFETY: the memory stays mapped.
    unsafe { libc::munlock(place, slab.len()) };
}
