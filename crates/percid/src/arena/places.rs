//! Places: the parts of the slots, and the blocks that they belong to.
//!
//! Every place is in one of four states: never allocated, in a block in use, in a list of freed
//! blocks, or in the rest of the page that small blocks are currently allocated from. It changes
//! its state by one exchange of one word, so no two threads get the same place. A place passes from
//! the thread that names it to another one only through such a word. The word is exchanged with
//! release order after the memory was opened, and read with acquire order. So every thread that
//! gets a place finds it open.

use super::free_list::FreeList;
use super::given_back;
use crate::sys::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

/// log2 of [`STRIDE`].
#[cfg(not(target_pointer_width = "32"))]
pub(crate) const SHIFT: u32 = 24;
/// log2 of [`STRIDE`] on 32 bits, where address space is scarce.
#[cfg(target_pointer_width = "32")]
pub(crate) const SHIFT: u32 = 20;

/// The bytes of a slot: room for two million counters (131 thousand on 32 bits), and for the
/// largest object.
pub(crate) const STRIDE: usize = 1 << SHIFT;

/// Maximum number of extents in a process: together 1 GiB for every ID.
pub(crate) const EXTENTS: usize = 64;

pub(crate) const WORD: usize = given_back::SMALLEST;
const LINE: usize = 64;
pub(crate) const PAGE: usize = 4096;

/// The sizes of blocks: `WORD << class`.
pub(crate) const CLASSES: usize = (STRIDE / WORD).ilog2() as usize + 1;

/// A place in slot 0 of any extent: the number of the extent, then [`SHIFT`] bits of offset. 0 is
/// not a place: nothing is ever allocated there.
pub(crate) type Place = u32;
const _: () = assert!((EXTENTS as u64) << SHIFT <= 1 << Place::BITS);

/// The first place that is allocated. The first line stays unused.
pub(crate) const FIRST: u64 = LINE as u64;

/// Returns the class of blocks of at least `bytes` bytes; `None` if there are none that large.
pub(crate) fn class(bytes: usize) -> Option<usize> {
    (bytes <= STRIDE).then(|| bytes.max(WORD).next_power_of_two().ilog2() as usize - 3)
}

/// The memory behind the places.
pub(crate) trait Ground {
    /// Makes sure that an extent is open up to `end`. Returns `true` if it is.
    fn open(&self, extent: usize, end: usize) -> bool;

    /// Returns the word at a place that is open.
    fn word(&self, place: Place) -> &AtomicI64;

    /// Returns the bits of [`given_back`] for a place that is open.
    fn bits(&self, place: Place) -> &AtomicU64;
}

/// The states of all places.
#[derive(Debug)]
pub(crate) struct Places {
    /// The first place that was never allocated, [`FIRST`] at first.
    pub(crate) next: AtomicU64,
    /// The first place in the current page of small blocks that was never allocated; at a page's
    /// start if there is no such page.
    pub(crate) next_small: AtomicU32,
    /// The freed blocks of each class, linked through their first word in slot 0.
    pub(crate) free: [FreeList; CLASSES],
}

impl Places {
    /// Returns a place for a block: a freed one, one that was never allocated, or a part of a
    /// larger one.
    pub(crate) fn claim(&self, class: usize, ground: &impl Ground) -> Option<Place> {
        let fresh = || match WORD << class < LINE {
            true => self.fresh_small(class, ground),
            false => self.fresh_large(class, ground),
        };
        self.take_freed(class, ground).or_else(fresh).or_else(|| self.split_larger(class, ground))
    }

    /// Takes a block back from its owner, which frees it. Returns `false` if it was freed before
    /// and not claimed since: then it must not be touched.
    pub(crate) fn take_back(&self, place: Place, ground: &impl Ground) -> bool {
        given_back::note(ground.bits(place), place)
    }

    /// Frees a block that was taken back, or never allocated.
    pub(crate) fn free(&self, class: usize, place: Place, ground: &impl Ground) {
        self.free[class].push(place, ground.word(place));
    }

    fn take_freed(&self, class: usize, ground: &impl Ground) -> Option<Place> {
        let place = self.free[class].pop(|place| ground.word(place))?;
        given_back::forget(ground.bits(place), place);
        Some(place)
    }

    /// Halves the next larger free block as often as needed. Halves are never joined again.
    fn split_larger(&self, class: usize, ground: &impl Ground) -> Option<Place> {
        let (place, larger) = (class + 1..CLASSES)
            .find_map(|larger| Some((self.take_freed(larger, ground)?, larger)))?;
        (class..larger).for_each(|half| self.free(half, place + (WORD << half) as Place, ground));
        Some(place)
    }

    /// Returns a place that was never allocated, in an extent that is open.
    fn fresh_large(&self, class: usize, ground: &impl Ground) -> Option<Place> {
        let size = (WORD << class) as u64;
        let start = |next: u64| {
            let start = next.next_multiple_of(size.min(PAGE as u64));
            let room = STRIDE as u64 - start % STRIDE as u64;
            // A block does not reach from one extent into the next.
            if size <= room { start } else { start + room }
        };
        let limit = (EXTENTS as u64) << SHIFT;
        let next = self.next.fetch_update(Relaxed, Relaxed, |next| {
            let end = start(next) + size;
            (end <= limit).then_some(end)
        });
        let next = next.ok()?;
        self.free_remainder(next, start(next), ground);
        let place = start(next);
        if open(place, size, ground) {
            return Some(place as Place);
        }
        // The next claim tries here again, unless another place was allocated since.
        let _ = self.next.compare_exchange(place + size, place, Relaxed, Relaxed);
        None
    }

    /// Frees the unused part before a block, at the end of an extent or in front of a page, if it
    /// contains whole cache lines.
    fn free_remainder(&self, from: u64, to: u64, ground: &impl Ground) {
        let mut place = from.next_multiple_of(LINE as u64);
        while place + LINE as u64 <= to && open(place, to - place, ground) {
            let fits = |&class: &usize| {
                let size = (WORD << class) as u64;
                place.is_multiple_of(size.min(PAGE as u64)) && place + size <= to
            };
            // A line always fits.
            let Some(class) = (0..CLASSES).rev().find(fits) else { return };
            self.free(class, place as Place, ground);
            place += (WORD << class) as u64;
        }
    }

    fn fresh_small(&self, class: usize, ground: &impl Ground) -> Option<Place> {
        let size = (WORD << class) as Place;
        let page_class = (PAGE / WORD).ilog2() as usize;
        loop {
            let seen = self.next_small.load(Relaxed);
            // Acquire: the thread that stored the page has opened it. Release: so has this one.
            let exchange =
                |now| self.next_small.compare_exchange(seen, now, AcqRel, Relaxed).is_ok();
            let next = seen.next_multiple_of(size);
            if !(next as usize).is_multiple_of(PAGE) {
                if exchange(next + size) {
                    return Some(next);
                }
                continue;
            }
            let page = self.claim(page_class, ground)?;
            if exchange(page + size) {
                return Some(page);
            }
            // Another thread has stored a page: this one is freed as a block of its size.
            self.take_back(page, ground);
            self.free(page_class, page, ground);
        }
    }
}

/// Opens the memory of a place and the `size` bytes from there. Returns `true` if it is open.
fn open(place: u64, size: u64, ground: &impl Ground) -> bool {
    let offset = place as usize & (STRIDE - 1);
    ground.open((place >> SHIFT) as usize, offset + size as usize)
}
