//! Cells: one 64-bit word per ID that is only added to. A counter is one cell, a histogram is
//! thousands.

use std::sync::atomic::Ordering::Relaxed;

use crate::arena::{self, Block};
use crate::critical::{self, by_mark};
use crate::handle::{ATOMIC, Handle};
use crate::id::{self, Source};
use crate::shared_slot;
use crate::sys::atomic::AtomicI64;
use crate::update::{self, Update};

/// Additions after which the atomic source reads its CPU again; a power of two. The branch is
/// mispredicted each time, which costs as much as six additions in total (Golden Cove): 0.6 % at
/// 1024, 0.15 % at 4096.
const ADDITIONS_PER_HINT: usize = 4096;

/// Adds `n` to this CPU's shard of a word, in the fast path. Returns `true` if it did.
///
/// # Safety
///
/// `word` is the word of a structure's handle, plus the offset of a word in its block.
#[inline(always)]
pub(crate) unsafe fn add_fast(word: usize, n: i64) -> bool {
    // #[gamma::skip(cond, reason = "of other processors")]
    if critical::EXIST {
        // SAFETY: the caller passes the word of a handle plus an offset; a handle gets its mark
        // after the source has been prepared.
        unsafe { by_mark!(word, add(n), else false) }
    } else {
        // SAFETY: the caller passes the word of a handle plus an offset.
        unsafe { add_to_copy(word, n) }
    }
}

/// Adds `n` to this thread's copy of a word, in the fast path of the atomic source. Returns `true`
/// if it did.
///
/// It is inline if there are no critical sections. Otherwise it is the first step of the slow path:
/// it must not make code longer that was compiled for sections.
///
/// # Safety
///
/// The same as for [`add_fast`].
#[inline(always)]
unsafe fn add_to_copy(word: usize, n: i64) -> bool {
    let copy = id::atomic::copy();
    if word & ATOMIC == 0 || copy == 0 {
        return false;
    }
    let shared = word - ATOMIC;
    // SAFETY: the caller passes a word of a block. Its memory is open, and stays mapped for the
    // life of the process.
    let before = unsafe { &*arena::word(shared + copy) }.fetch_add(n, Relaxed);
    // The count itself decides when to read the CPU again: that needs no store. The address is
    // added, so that words which are updated in turn do not all do so in the same round. If the
    // count is a bad choice only the hint's age suffers: it is never renewed by additions of large
    // powers of two alone.
    if (before as usize).wrapping_add(shared).is_multiple_of(ADDITIONS_PER_HINT) {
        id::atomic::renew_copy();
    }
    true
}

/// Adds in the slow path to the word `offset` bytes into a structure of `bytes` bytes: first use,
/// no ID, an aborted section.
#[inline(always)]
pub(crate) fn add_slowly(handle: &Handle, bytes: usize, offset: usize, n: i64) {
    // SAFETY: the caller's offset is the offset of a word of its structure.
    if !critical::EXIST || !unsafe { add_to_copy(handle.word().wrapping_add(offset), n) } {
        settle_and_add(handle, bytes, Addition { offset, n });
    }
}

/// Initialises the handle and adds. Out of line, so that the first try needs no stack: the locked
/// instruction would have to wait for these stores.
#[inline(never)]
fn settle_and_add(handle: &Handle, bytes: usize, addition: Addition) {
    update::slowly(handle, bytes, addition);
}

/// An addition of `n` to the word `offset` bytes into a structure.
#[derive(Clone, Copy)]
struct Addition {
    offset: usize,
    n: i64,
}

impl Update for Addition {
    #[inline(always)]
    unsafe fn by_section(self, word: usize) -> bool {
        // SAFETY: the caller passes a block of the structure with the mark of a prepared source,
        // and the offset is the offset of a word of the structure.
        unsafe { add_fast(word + self.offset, self.n) }
    }

    fn atomically(self, word: impl Fn(usize) -> &'static AtomicI64) {
        shared_slot::add(word(self.offset), self.n);
    }

    fn times(self) -> i64 {
        self.n
    }
}

/// Returns the values of all IDs.
pub(crate) fn per_id(cell: Block, source: Option<Source>) -> impl Iterator<Item = i64> {
    let ids = source.map_or(0, Source::id_count);
    (0..ids).map(move |id| cell.word_of_id(id).load(Relaxed))
}

/// Returns the total of the IDs and the shared slot.
pub(crate) fn sum(cell: Block, source: Option<Source>) -> i64 {
    shared_slot::sum(cell.shared_if_used(), || of_ids(cell, source))
}

/// Takes the total and leaves zero, or the additions during the call.
///
/// Lock-free: it starts over if another `take`, or an addition without an ID, happens during it.
pub(crate) fn take(cell: Block, source: Option<Source>) -> i64 {
    swap(cell, source, 0)
}

/// Takes the total and leaves `n`, in one step, and the additions during the call. Lock-free like
/// [`take`].
pub(crate) fn swap(cell: Block, source: Option<Source>, n: i64) -> i64 {
    loop {
        // A cell of this value is not changed, so that the shared slot of an empty one stays
        // untouched.
        if sum(cell, source) == n {
            return n;
        }
        if let Some(taken) = shared_slot::swap(cell.shared(), n, || of_ids(cell, source)) {
            return taken;
        }
    }
}

/// Returns the sum of the additions without an ID, less everything that was taken.
pub(crate) fn shared(cell: Block) -> i64 {
    shared_slot::sum(cell.shared_if_used(), || 0)
}

fn of_ids(cell: Block, source: Option<Source>) -> i64 {
    per_id(cell, source).fold(0, i64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counter;
    use crate::handle::State;
    use crate::id::atomic;
    use crate::sys::MAX_CPUS;
    use crate::sys::{steps, thread};

    fn counter() -> Counter {
        Counter::with_source(Source::Atomic).expect("always available")
    }

    /// Returns `true` if an addition changes the remaining operations of this thread's hint.
    fn adds_and_renews(counter: &Counter) -> bool {
        // SAFETY: the block is this thread's own.
        unsafe { (*thread::own()).hint_left = 5 };
        counter.add(1);
        // SAFETY: the block is this thread's own.
        unsafe { (*thread::own()).hint_left != 5 }
    }

    #[test]
    fn additions_go_to_the_copy_and_need_nothing_else() {
        let counter = counter();
        counter.add(1);
        assert_ne!(atomic::copy(), 0);
        let counted = (0..1000).filter(|_| adds_and_renews(&counter));
        assert!(counted.count() <= 1, "stores that the next addition waits for");
        assert_eq!((counter.sum(), counter.shared()), (1001, 0));
    }

    /// The address of a copy of it would be invalid.
    #[test]
    fn a_count_in_place_of_an_address_is_counted() {
        counter().add(1);
        assert_ne!(atomic::copy(), 0);
        let handle = Handle::new();
        assert!(handle.replace(State::Unclaimed, State::Inline(-1)));
        add_slowly(&handle, 8, 0, 6);
        assert!(matches!(handle.state(), State::Inline(5)));
    }

    #[test]
    fn additions_that_have_no_copy_are_not_lost() {
        let counter = counter();
        let _watching = steps::watch(|_| Some(Err(steps::REFUSED)));
        // SAFETY: the block is this thread's own.
        let block = unsafe { &mut *thread::own() };
        (block.hint, block.hint_left, block.copy) = (MAX_CPUS as u32 + 2, 64, 0);
        counter.add(5);
        counter.add(6);
        assert_eq!((counter.sum(), counter.shared(), atomic::copy()), (11, 11, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of additions")]
    fn additions_renew_the_hint() {
        let counter = counter();
        counter.add(1);
        let rounds = 100 * ADDITIONS_PER_HINT;
        let renewed = (0..rounds).filter(|_| adds_and_renews(&counter));
        // A thread that is moved continues in another copy, which has a different count.
        assert!((95..=105).contains(&renewed.count()));
        assert_eq!(counter.sum(), rounds as i64 + 1);
    }
}
