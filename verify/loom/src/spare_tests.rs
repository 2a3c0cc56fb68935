//! The mark of spare slabs: a slab is on their list once at most, and one at a time stores in its
//! link.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};
use loom::thread;

use crate::explore;
use crate::free_list::FreeList;
use crate::spare::SpareMark;

/// A list of spares with one slab, and the slab's words.
struct Spares {
    list: FreeList,
    link: AtomicI64,
    /// Written whenever the link is: loom tries no two stores to one word in another order than
    /// they are carried out in, but it sees that nothing orders these.
    beside_the_link: UnsafeCell<()>,
    mark: SpareMark,
}

// SAFETY: exclusive writing beside the link is the property under test.
unsafe impl Sync for Spares {}

impl Spares {
    fn new() -> Arc<Spares> {
        let list = FreeList { head: AtomicU64::new(0) };
        let mark = SpareMark { set: AtomicU32::new(0) };
        let (link, beside_the_link) = (AtomicI64::new(0), UnsafeCell::new(()));
        let spares = Spares { list, link, beside_the_link, mark };
        spares.put();
        Arc::new(spares)
    }

    fn put(&self) {
        if self.mark.set() {
            self.store_in_the_link();
            self.list.push(1, &self.link);
        }
    }

    fn take(&self, clear: fn(&SpareMark)) -> bool {
        let taken = self.list.pop(|_| &self.link).is_some();
        if taken {
            self.store_in_the_link();
            clear(&self.mark);
        }
        taken
    }

    fn store_in_the_link(&self) {
        self.beside_the_link.with_mut(|_| ());
    }
}

/// Explores a thread that takes the slab while another one, which has retired it, puts it there.
fn taken_and_put(clear: fn(&SpareMark)) {
    let spares = Spares::new();
    let theirs = Arc::clone(&spares);
    let other = thread::spawn(move || theirs.put());
    let first = spares.take(clear);
    other.join().unwrap();
    let others = (0..3).filter(|_| spares.take(SpareMark::clear)).count();
    assert!(first && others <= 1, "it was there twice");
    spares.put();
    assert!(spares.take(SpareMark::clear), "it can never be a spare again");
}

#[test]
fn a_slab_is_a_spare_once() {
    explore::all("spare, taken and put", || taken_and_put(SpareMark::clear));
}

#[test]
fn a_mark_that_stays_is_caught() {
    explore::expect_failure("spare, not cleared", || taken_and_put(|_| ()));
}
