//! The objects of a slab: each is cut once, and the slab's memory goes back only when all that were
//! cut are idle.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::cut::Cut;
use crate::explore;

/// Number of objects in the slab.
const FIT: u32 = 2;

/// A slab whose first object is idle and belongs to the test.
struct Slab {
    cut: Cut,
    /// The memory behind the objects; loom checks for concurrent access.
    objects: [UnsafeCell<u32>; FIT as usize],
}

impl Slab {
    fn new() -> Arc<Slab> {
        let cut = Cut { count: AtomicU32::new(1) };
        Arc::new(Slab { cut, objects: std::array::from_fn(|_| UnsafeCell::new(0)) })
    }

    fn cut(&self) -> Option<u32> {
        let number = self.cut.next(FIT)?;
        // SAFETY: that no other thread uses it is what is checked.
        self.objects[number as usize].with_mut(|object| unsafe { *object += 1 });
        Some(number)
    }

    /// Retires the slab, like a drain that holds the first object. Returns `true` if the memory was
    /// given back.
    fn retire(&self, close: fn(&Cut) -> Option<u32>, discarded: bool) -> bool {
        let Some(count) = close(&self.cut) else { return false };
        // SAFETY: that no other thread uses the objects is the property under test.
        self.objects.iter().for_each(|object| object.with_mut(|object| unsafe { *object = 0 }));
        self.cut.open(if discarded { 0 } else { count });
        discarded
    }
}

fn a_cut_and_a_drain(close: fn(&Cut) -> Option<u32>, discarded: bool) {
    let slab = Slab::new();
    let theirs = Arc::clone(&slab);
    let other = thread::spawn(move || theirs.cut());
    let retired = slab.retire(close, discarded);
    let cut = other.join().unwrap();
    // Object 0 is the drain's own, unless the memory has gone back.
    assert!(cut != Some(0) || retired, "one object is lent twice");
    assert!(cut != Some(1) || !retired, "the memory of a lent object has gone back");
}

#[test]
fn a_slab_goes_back_only_if_all_objects_are_idle() {
    for discarded in [true, false] {
        explore::all("cut, an object is cut and the slab drained", move || {
            a_cut_and_a_drain(|cut| cut.close(1, FIT), discarded);
        });
    }
}

#[test]
fn two_threads_cut_two_objects() {
    explore::all("cut, 2 threads", || {
        let slab = Slab::new();
        slab.cut.open(0);
        let theirs = Arc::clone(&slab);
        let other = thread::spawn(move || theirs.cut());
        let (mine, theirs) = (slab.cut(), other.join().unwrap());
        assert!(mine.is_some() && theirs.is_some() && mine != theirs);
        assert_eq!(
            (slab.cut(), slab.cut.close(1, FIT)),
            (None, None),
            "two are cut, all there are"
        );
        assert_eq!(slab.cut.close(2, FIT), Some(3));
    });
}

#[test]
fn closing_without_an_exchange_is_caught() {
    explore::expect_failure("cut, closed by a store", || {
        let close = |cut: &Cut| {
            let count = cut.count.load(Relaxed);
            cut.count.store(1 << 30, Relaxed);
            (count == 1).then_some(count)
        };
        a_cut_and_a_drain(close, true);
    });
}
