//! Blocks: the memory of one object, at the same offset in every slot.
//!
//! A block has a size of 8 bytes times a power of two. Blocks smaller than a cache line are
//! allocated from pages of their own, so that counters stay together whatever else a program
//! creates. All others are aligned to cache lines. Blocks of a page or more are aligned to pages,
//! which are returned to the kernel when the blocks are freed.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::extents::{EXTENT, FRONTIER, UNAVAILABLE, bits_start, open_up_to};
use super::free_list::FreeList;
use super::given_back;
use super::is_zero::is_zero;
use super::places::{CLASSES, FIRST, Ground, PAGE, Place, Places, SHIFT, STRIDE, WORD, class};
use crate::sys::memory;
#[cfg(test)]
use crate::sys::steps::{self, Step};

/// All places of the process.
static PLACES: Places = Places {
    next: AtomicU64::new(FIRST),
    next_small: AtomicU32::new(0),
    free: [const { FreeList { head: AtomicU64::new(0) } }; CLASSES],
};

/// The memory behind the places.
struct Arena;

impl Ground for Arena {
    fn open(&self, extent: usize, end: usize) -> bool {
        open_up_to(extent, end)
    }

    fn word(&self, place: Place) -> &AtomicI64 {
        Block(address(place)).first_word(0)
    }

    fn bits(&self, place: Place) -> &AtomicU64 {
        let bits = std::ptr::with_exposed_provenance(bits_of(place));
        // SAFETY: if a place is open, its bits are open too, and both stay mapped for the life of
        // the process.
        unsafe { &*bits }
    }
}

/// Nonzero once [`Block::shared`] was used: until then sums need not touch the pages of the shared
/// slot.
static SHARED_USED: AtomicU32 = AtomicU32::new(0);

/// A block, identified by its address in the shared slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block(pub(crate) usize);

impl Block {
    /// Claims a block of at least `bytes` bytes, all zero in every slot; `None` if it is too large,
    /// or if there is no memory.
    pub(crate) fn claim(bytes: usize) -> Option<Block> {
        #[cfg(test)]
        if let Some(Err(_)) = steps::at(Step::Claim(bytes)) {
            return None;
        }
        Some(Block(address(PLACES.claim(class(bytes)?, &Arena)?)))
    }

    /// Frees the block of `bytes` bytes. Returns `false` without effect if it was freed before and
    /// not claimed since.
    ///
    /// # Safety
    ///
    /// No thread uses the block any more, it was claimed with this size, and it does not belong to
    /// another owner by now. Then no critical section on it can be in flight either: a section runs
    /// inside an operation of a thread that uses the block.
    pub(crate) unsafe fn release(self, bytes: usize) -> bool {
        let Some(class) = class(bytes) else { return false };
        let place = place(self.0);
        // Before anything is cleared: the first word of a free block belongs to its list.
        if !PLACES.take_back(place, &Arena) {
            return false;
        }
        for slot in 0..FRONTIER.slots.reached() {
            // SAFETY: the caller guarantees that no thread uses the block, and its slots are open.
            unsafe { clear(self.0 + slot as usize * STRIDE, WORD << class) };
        }
        PLACES.free(class, place, &Arena);
        true
    }

    /// Returns the address of the block's shard for `id`, whose memory must have been opened.
    pub(crate) fn of_id(self, id: u32) -> usize {
        debug_assert!(id + 1 < FRONTIER.slots.reached());
        self.0 + distance(id)
    }

    /// Returns the block that lies `bytes` bytes inside this one.
    pub(crate) fn at(self, bytes: usize) -> Block {
        Block(self.0 + bytes)
    }

    /// Returns the first word in the shared slot, for an update.
    pub(crate) fn shared(self) -> &'static AtomicI64 {
        // Tested before it is set, so that the flag's line stays shared between the CPUs.
        if SHARED_USED.load(Relaxed) == 0 {
            SHARED_USED.store(1, Relaxed);
        }
        self.first_word(0)
    }

    /// Returns the first word in the shared slot, for reading. Returns `None`, without touching the
    /// page, as long as no thread ever updated one, or none whose update this thread must see.
    pub(crate) fn shared_if_used(self) -> Option<&'static AtomicI64> {
        (SHARED_USED.load(Relaxed) != 0).then(|| self.first_word(0))
    }

    /// Returns the first word of `id`'s shard, whose memory must have been opened.
    pub(crate) fn word_of_id(self, id: u32) -> &'static AtomicI64 {
        self.first_word(id + 1)
    }

    /// Returns the first word of the shard at this [`distance`] from the shared slot, whose memory
    /// must have been opened.
    pub(crate) fn copy(self, distance: usize) -> &'static AtomicI64 {
        self.first_word((distance / STRIDE) as u32)
    }

    fn first_word(self, slot: u32) -> &'static AtomicI64 {
        debug_assert!(slot < FRONTIER.slots.reached());
        // SAFETY: blocks lie inside slots, and open slots stay mapped for the life of the process.
        unsafe { &*word(self.0 + slot as usize * STRIDE) }
    }
}

/// Returns the bytes of a slot that were ever allocated, or put on a list.
#[cfg(test)]
#[allow(dead_code, reason = "for tests of Linux with sections")]
pub(crate) fn handed_out() -> u64 {
    PLACES.next.load(Relaxed)
}

/// Returns the distance of an ID's shards from the shared slot, in bytes.
pub(crate) fn distance(id: u32) -> usize {
    (id as usize + 1) * STRIDE
}

/// Returns the word at an address inside the arena.
#[inline(always)]
pub(crate) fn word(address: usize) -> *const AtomicI64 {
    std::ptr::with_exposed_provenance(address)
}

/// Returns the address of a place whose extent has been reserved.
fn address(place: Place) -> usize {
    let base = EXTENT[(place >> SHIFT) as usize].load(Relaxed);
    base + (place as usize & (STRIDE - 1))
}

/// Returns the address of the bits of [`given_back`] for a place that is open.
fn bits_of(place: Place) -> usize {
    let base = EXTENT[(place >> SHIFT) as usize].load(Relaxed);
    bits_start(base) + given_back::word_at(place as usize & (STRIDE - 1))
}

/// Returns the place of an address in slot 0 of some extent.
fn place(address: usize) -> Place {
    let bases = EXTENT.iter().map(|base| base.load(Relaxed));
    let found = bases
        .enumerate()
        .find(|&(_, base)| base != UNAVAILABLE && base != 0 && address.wrapping_sub(base) < STRIDE);
    found.map_or(0, |(index, base)| ((index << SHIFT) + (address - base)) as Place)
}

/// Zeroes a part of an open slot.
///
/// # Safety
///
/// No thread uses it.
unsafe fn clear(start: usize, bytes: usize) {
    // SAFETY: whole pages of the arena that no thread uses.
    if bytes >= PAGE && unsafe { memory::discard(start, bytes) } {
        return;
    }
    for address in (start..start + bytes).step_by(WORD) {
        // The word is read first, so that pages that were never touched need no memory.
        if !is_zero(address) {
            // SAFETY: the word lies in an open slot.
            unsafe { &*word(address) }.store(0, Relaxed);
        }
    }
}

/// A lock-free list of blocks that are not in use.
#[derive(Debug)]
pub(crate) struct BlockList(FreeList);

impl BlockList {
    pub(crate) const fn new() -> BlockList {
        BlockList(FreeList { head: AtomicU64::new(0) })
    }

    /// Removes the block that was put there last. The first word of its shared slot is zero.
    pub(crate) fn pop(&self) -> Option<Block> {
        self.0.pop(|place| Arena.word(place)).map(|place| Block(address(place)))
    }

    /// Adds a block. The first word of its shared slot belongs to the list from now on.
    pub(crate) fn push(&self, block: Block) {
        self.0.push(place(block.0), block.first_word(0));
    }
}

/// Returns `true` if a block lies in an extent that this copy of libpercid has reserved.
#[cfg(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
))]
pub(crate) fn contains(block: Block) -> bool {
    let bases = EXTENT.iter().map(|base| base.load(Relaxed)).take_while(|&base| base != 0);
    bases.filter(|&base| base != UNAVAILABLE).any(|base| block.0.wrapping_sub(base) < STRIDE)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;

    use super::*;
    use crate::arena::places::EXTENTS;

    /// Claims all sizes in turn, and writes each first and last word, so that an overlap would be
    /// seen.
    #[test]
    fn blocks_of_all_sizes_are_zeroed_aligned_and_apart() {
        let sizes = [8, 16, 24, 32, 64, 100, 512, 4096, 5000, 30_208, 1 << 20, STRIDE];
        for _ in 0..3 {
            let blocks: Vec<(Block, usize)> = (0..30)
                .map(|index| sizes[index % sizes.len()])
                .map(|bytes| (Block::claim(bytes).expect("room"), bytes))
                .collect();
            let words = |&(block, bytes): &(Block, usize)| {
                let size = bytes.next_power_of_two();
                assert_eq!(block.0 % size.min(PAGE), 0, "{bytes}");
                [block, block.at(size - WORD)].map(|block| block.first_word(0))
            };
            for (number, block) in blocks.iter().enumerate() {
                assert!(words(block).iter().all(|word| word.load(Relaxed) == 0));
                words(block).iter().for_each(|word| word.store(number as i64 + 1, Relaxed));
            }
            for (number, block) in blocks.iter().enumerate() {
                assert!(words(block).iter().all(|word| word.load(Relaxed) == number as i64 + 1));
            }
            for (block, bytes) in blocks {
                // SAFETY: no thread uses the block any more.
                unsafe { block.release(bytes) };
            }
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        assert_eq!(Block::claim(STRIDE + 1), None);
    }

    #[test]
    fn places_and_addresses_name_the_same() {
        let block = Block::claim(STRIDE).expect("room");
        assert_eq!(address(place(block.0)), block.0);
        assert!(place(block.0) as usize >= STRIDE, "not in the first extent");
        // SAFETY: no thread uses the block any more.
        unsafe { block.release(STRIDE) };
    }

    #[cfg(unix)]
    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_released_block_is_zero_even_if_it_is_locked_and_its_neighbour_is_not_touched() {
        assert!(crate::arena::open_id(0));
        for bytes in [2048, PAGE, 4 * PAGE] {
            let [first, second] = [(); 2].map(|()| Block::claim(bytes).expect("room"));
            let words = |block: Block| {
                let last = block.at(bytes - WORD);
                [block.word_of_id(0), last.word_of_id(0), last.first_word(0), block.first_word(0)]
            };
            for block in [first, second] {
                words(block).iter().for_each(|word| word.store(5, Relaxed));
            }
            let start = std::ptr::with_exposed_provenance::<libc::c_void>(first.of_id(0));
            // SAFETY: the block is mapped.
            assert_eq!(unsafe { libc::mlock(start, bytes) }, 0);
            // SAFETY: no thread uses the block any more. Its memory stays mapped.
            unsafe { first.release(bytes) };
            // The last word belongs to the list.
            assert!(words(first)[..3].iter().all(|word| word.load(Relaxed) == 0), "{bytes}");
            assert!(words(second).iter().all(|word| word.load(Relaxed) == 5), "{bytes}");
            // SAFETY: the block is mapped, and no thread uses the second block any more.
            unsafe {
                libc::munlock(start, bytes);
                second.release(bytes);
            }
        }
    }

    /// No other test uses blocks of this size.
    #[test]
    fn a_block_that_is_free_is_not_given_back_again() {
        const BYTES: usize = 1 << 18;
        let [first, second] = [(); 2].map(|()| Block::claim(BYTES).expect("room"));
        let release = |block: Block| {
            // SAFETY: no thread uses the blocks any more, and no other thread claims one.
            unsafe { block.release(BYTES) }
        };
        assert!(release(first) && release(second));
        let link = || second.first_word(0).load(Relaxed);
        assert_ne!(link(), 0, "the list goes on behind it");
        let before = link();
        assert!(!release(second) && !release(first), "both are free");
        assert_eq!(link(), before, "the list's word");
        let again = [(); 2].map(|()| Block::claim(BYTES).expect("room"));
        assert_ne!(again[0], again[1]);
        assert!(again.into_iter().all(release), "they have owners again");
    }

    #[test]
    fn every_place_has_a_bit_of_its_own() {
        let block = Block::claim(STRIDE).expect("room");
        let at = |offset: usize| place(block.0) + offset as Place;
        let words = [0, 1, 32, 63, 64, 128, PAGE / WORD, STRIDE / WORD - 1];
        let places = words.map(|word| at(word * WORD));
        for place in places {
            assert!(crate::arena::reserved().any(|range| range.contains(&bits_of(place))));
            assert!(PLACES.take_back(place, &Arena), "{place:x}");
        }
        for (index, &place) in places.iter().enumerate() {
            given_back::forget(Arena.bits(place), place);
            let noted = |&place: &Place| !PLACES.take_back(place, &Arena);
            assert!(places[index + 1..].iter().all(noted), "{place:x}");
        }
        // SAFETY: no thread uses the block any more.
        assert!(unsafe { block.release(STRIDE) });
    }

    #[test]
    fn half_a_page_comes_back_and_the_other_half_keeps_its_values() {
        let first = Block::claim(PAGE).expect("room");
        let halves = [first, first.at(PAGE / 2)].map(|half| half.first_word(0));
        halves.iter().for_each(|word| word.store(5, Relaxed));
        // SAFETY: no thread uses the page, and no other block does.
        unsafe { first.release(PAGE / 2) };
        assert_eq!(halves[1].load(Relaxed), 5);
        // SAFETY: no thread uses the page, and no other block does.
        unsafe { first.at(PAGE / 2).release(PAGE / 2) };
    }

    /// Words that are created at their first use.
    struct Anywhere {
        words: RefCell<HashMap<Place, &'static AtomicI64>>,
        bits: RefCell<HashMap<usize, &'static AtomicU64>>,
        open: RefCell<[usize; EXTENTS]>,
    }

    impl Ground for Anywhere {
        fn open(&self, extent: usize, end: usize) -> bool {
            let open = &mut self.open.borrow_mut()[extent];
            *open = end.max(*open);
            end <= STRIDE
        }

        fn word(&self, place: Place) -> &AtomicI64 {
            let (extent, offset) = ((place >> SHIFT) as usize, place as usize % STRIDE);
            assert!(offset + WORD <= self.open.borrow()[extent], "place {place:x} is closed");
            let new = || Box::leak(Box::new(AtomicI64::new(0)));
            self.words.borrow_mut().entry(place).or_insert_with(|| new())
        }

        fn bits(&self, place: Place) -> &AtomicU64 {
            let word =
                (place >> SHIFT) as usize * STRIDE + given_back::word_at(place as usize % STRIDE);
            let new = || Box::leak(Box::new(AtomicU64::new(0)));
            self.bits.borrow_mut().entry(word).or_insert_with(|| new())
        }
    }

    fn places() -> (Places, Anywhere) {
        let free = std::array::from_fn(|_| FreeList { head: AtomicU64::new(0) });
        let places = Places { next: AtomicU64::new(FIRST), next_small: AtomicU32::new(0), free };
        let open = RefCell::new([0; EXTENTS]);
        let (words, bits) = (RefCell::default(), RefCell::default());
        (places, Anywhere { words, bits, open })
    }

    /// Returns the bytes of all freed blocks.
    fn freed(places: &Places, ground: &Anywhere) -> u64 {
        let of = |class: usize| {
            let pop = || places.free[class].pop(|place| ground.word(place));
            std::iter::from_fn(pop).count() as u64 * (WORD << class) as u64
        };
        (0..CLASSES).map(of).sum()
    }

    #[test]
    fn blocks_lie_in_one_extent_and_what_is_left_over_is_free() {
        let (places, ground) = places();
        let mut claimed = 0;
        for bytes in [64, PAGE, 1 << 20, 128, STRIDE, 3 * PAGE, STRIDE / 2, STRIDE, PAGE / 2] {
            let class = class(bytes).expect("a class");
            let place = places.claim(class, &ground).expect("room") as usize;
            let size = WORD << class;
            assert_eq!(place >> SHIFT, (place + size - 1) >> SHIFT, "{bytes}");
            assert_eq!(place % size.min(PAGE), 0, "{bytes}");
            assert!(place % STRIDE + size <= ground.open.borrow()[place >> SHIFT], "{bytes}");
            claimed += size as u64;
        }
        assert_eq!(claimed + freed(&places, &ground), places.next.load(Relaxed) - FIRST);
    }

    #[test]
    fn larger_blocks_are_halved_when_nothing_else_is_left() {
        let (places, ground) = places();
        let claim = |bytes| places.claim(class(bytes).expect("a class"), &ground);
        let all: Vec<Place> = std::iter::from_fn(|| claim(STRIDE)).collect();
        assert_eq!(all.len(), EXTENTS - 1, "the first line is nobody's");
        assert_eq!(freed(&places, &ground), STRIDE as u64 - FIRST);
        places.free(CLASSES - 1, all[5], &ground);
        let mut pages: Vec<Place> = std::iter::from_fn(|| claim(PAGE)).collect();
        pages.sort_unstable();
        assert!(pages.into_iter().eq((all[5]..all[6]).step_by(PAGE)));
        assert_eq!(claim(WORD), None, "it is full");
    }

    /// Memory that is temporarily refused.
    #[test]
    fn a_place_that_could_not_be_opened_is_handed_out_later() {
        struct Refused(Anywhere, Cell<bool>);

        impl Ground for Refused {
            fn open(&self, extent: usize, end: usize) -> bool {
                !self.1.get() && self.0.open(extent, end)
            }

            fn word(&self, place: Place) -> &AtomicI64 {
                self.0.word(place)
            }

            fn bits(&self, place: Place) -> &AtomicU64 {
                self.0.bits(place)
            }
        }

        let (places, ground) = places();
        let ground = Refused(ground, Cell::new(true));
        let claim = |bytes| places.claim(class(bytes).expect("a class"), &ground);
        let before = places.next.load(Relaxed);
        for bytes in [8, 64, PAGE, STRIDE].repeat(100) {
            assert_eq!(claim(bytes), None, "{bytes}");
        }
        let wasted = places.next.load(Relaxed) - before;
        // The unused parts in front of the pages, and in front of the next extent for the largest
        // block.
        assert!(wasted < 2 * STRIDE as u64, "{wasted} bytes of addresses");
        ground.1.set(false);
        assert!(claim(PAGE).is_some());
    }

    #[test]
    fn a_block_is_taken_back_once_in_each_of_its_lives() {
        let (places, ground) = places();
        for bytes in [8, 8, 32, PAGE, STRIDE] {
            let class = class(bytes).expect("a class");
            let claim = || places.claim(class, &ground).expect("room");
            let place = claim();
            for _ in 0..3 {
                assert!(places.take_back(place, &ground), "{bytes}: it has an owner");
                assert!(!places.take_back(place, &ground), "{bytes}: it has none");
                places.free(class, place, &ground);
                assert!(!places.take_back(place, &ground), "{bytes}: it is free");
                assert_eq!(claim(), place, "{bytes}");
            }
        }
    }

    /// Another thread stores its page of small blocks while one opens its own.
    #[test]
    fn a_page_that_comes_second_is_free() {
        struct Racing<'p>(Anywhere, &'p Places, Cell<Option<Place>>);

        impl Ground for Racing<'_> {
            fn open(&self, extent: usize, end: usize) -> bool {
                if self.2.get().is_none() {
                    self.2.set(self.1.claim(0, &self.0));
                }
                self.0.open(extent, end)
            }

            fn word(&self, place: Place) -> &AtomicI64 {
                self.0.word(place)
            }

            fn bits(&self, place: Place) -> &AtomicU64 {
                self.0.bits(place)
            }
        }

        let (places, ground) = places();
        let ground = Racing(ground, &places, Cell::new(None));
        let mine = places.claim(0, &ground).expect("room");
        let first = ground.2.get().expect("room");
        assert_eq!((first as usize % PAGE, mine), (0, first + WORD as Place));
        let all = places.next.load(Relaxed) - FIRST;
        assert_eq!(freed(&places, &ground.0), all - PAGE as u64, "one page is in use");
    }

    #[test]
    fn small_blocks_fill_a_page_of_their_own() {
        let (places, ground) = places();
        let claim = |bytes| places.claim(class(bytes).expect("a class"), &ground).expect("room");
        let first = claim(8);
        assert_eq!(first as usize % PAGE, 0);
        claim(64);
        let last = first + (PAGE - WORD) as Place;
        assert!((first + 8..=last).step_by(WORD).all(|place| claim(8) == place));
        let next = claim(32);
        assert_eq!(next as usize % PAGE, 0);
        assert_eq!((claim(8), claim(32)), (next + 32, next + 64));
    }
}
