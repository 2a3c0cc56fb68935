//! Idle objects that are on no list: the slab's memory is given back once, when no thread uses any
//! of them.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

use crate::cut::Cut;
use crate::explore;
use crate::left::Left;

/// Number of objects in the slab.
const FIT: u32 = 2;

/// A slab whose two objects are lent.
struct Slab {
    cut: Cut,
    left: Left,
    /// The memory behind the objects; loom checks for concurrent access.
    objects: [UnsafeCell<u32>; FIT as usize],
    /// Number of times that the slab was given back.
    retired: AtomicU32,
}

impl Slab {
    fn new() -> Arc<Slab> {
        let (cut, left) = (Cut { count: AtomicU32::new(FIT) }, Left { number: AtomicU32::new(0) });
        let objects = std::array::from_fn(|_| UnsafeCell::new(0));
        Arc::new(Slab { cut, left, objects, retired: AtomicU32::new(0) })
    }

    /// Gives an object back, like a thread that has no room for it.
    fn leave(&self, object: usize, add: fn(&Left) -> u32) {
        // SAFETY: that no other thread uses it is the property under test.
        self.objects[object].with_mut(|object| unsafe { *object += 1 });
        if add(&self.left) == FIT {
            self.retire();
        }
    }

    /// Retires the slab, like the last thread, or like a drain without idle objects of its own.
    fn retire(&self) {
        let left = self.left.take();
        let closed = if left > 0 { self.cut.close(left, FIT) } else { None };
        if closed.is_some() {
            // SAFETY: that no other thread uses the objects is the property under test.
            self.objects.iter().for_each(|object| object.with_mut(|object| unsafe { *object = 0 }));
            self.cut.open(0);
            self.retired.fetch_add(1, Relaxed);
        } else if left > 0 {
            self.left.add(left);
        }
    }
}

fn two_leave(add: fn(&Left) -> u32) {
    let slab = Slab::new();
    let theirs = Arc::clone(&slab);
    let other = thread::spawn(move || theirs.leave(1, add));
    slab.leave(0, add);
    other.join().unwrap();
    assert_eq!((slab.retired.load(Relaxed), slab.left.take()), (1, 0));
}

#[test]
fn the_last_one_takes_the_memory_along() {
    explore::all("left, 2 threads", || two_leave(|left| left.add(1)));
}

#[test]
fn what_a_drain_has_taken_for_a_moment_waits_for_the_next() {
    explore::all("left, a drain and an object", || {
        let slab = Slab::new();
        slab.leave(0, |left| left.add(1));
        let theirs = Arc::clone(&slab);
        let drain = thread::spawn(move || theirs.retire());
        slab.leave(1, |left| left.add(1));
        drain.join().unwrap();
        slab.retire();
        assert_eq!((slab.retired.load(Relaxed), slab.left.take()), (1, 0));
    });
}

#[test]
fn leaving_without_an_order_is_caught() {
    explore::expect_failure("left, added without an order", || {
        two_leave(|left| left.number.fetch_add(1, Relaxed) + 1);
    });
}
