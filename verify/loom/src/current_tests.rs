//! The slab that objects are cut from: a thread that gets it observes its complete contents.

use std::ptr;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicPtr;
use loom::thread;

use crate::current::Current;
use crate::explore;

struct Pool {
    current: Current<UnsafeCell<u32>>,
    slabs: [UnsafeCell<u32>; 2],
}

// SAFETY: slabs live as long as the pool; exclusive use is the property under test.
unsafe impl Send for Pool {}
// SAFETY: slabs live as long as the pool; exclusive use is the property under test.
unsafe impl Sync for Pool {}

impl Pool {
    /// Makes a slab and takes it, unless another thread was faster.
    fn make(&self, index: usize) -> bool {
        let seen = self.current.get();
        // SAFETY: no other thread has the slab yet.
        self.slabs[index].with_mut(|slab| unsafe { *slab = 7 });
        self.current.replace(seen, ptr::from_ref(&self.slabs[index]).cast_mut())
    }

    fn look(&self) {
        // SAFETY: null, or a slab of this pool.
        if let Some(slab) = unsafe { self.current.get().as_ref() } {
            // SAFETY: that no other thread writes it is what is checked.
            slab.with(|slab| assert_eq!(unsafe { *slab }, 7));
        }
    }
}

#[test]
fn a_slab_is_seen_as_it_was_made_and_one_of_two_is_taken() {
    explore::all("current, 2 threads", || {
        let current = Current { slab: AtomicPtr::new(ptr::null_mut()) };
        let pool = Arc::new(Pool { current, slabs: std::array::from_fn(|_| UnsafeCell::new(0)) });
        let theirs = Arc::clone(&pool);
        let other = thread::spawn(move || {
            let taken = theirs.make(0);
            theirs.look();
            taken
        });
        pool.look();
        let taken = pool.make(1);
        pool.look();
        assert!(other.join().unwrap() || taken);
    });
}
