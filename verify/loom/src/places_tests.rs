//! The places of blocks: no two threads get the same one, each is open and zeroed, none is lost,
//! and none is given back twice.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::free_list::FreeList;
use crate::places::{Ground, PAGE, Place, Places, class};

/// Pages that the tests use.
const PAGES: usize = 4;
/// Words at the start of each that they use.
const WORDS: usize = 3;

struct Memory {
    /// 1 for each page that is open.
    open: [AtomicU32; PAGES],
    words: [[AtomicI64; WORDS]; PAGES],
    bits: [AtomicU64; PAGES],
}

impl Ground for Memory {
    fn open(&self, extent: usize, end: usize) -> bool {
        assert_eq!((extent, end % PAGE), (0, 0));
        self.open[..end / PAGE].iter().for_each(|page| page.store(1, Relaxed));
        true
    }

    fn word(&self, place: Place) -> &AtomicI64 {
        let (page, offset) = (place as usize / PAGE, place as usize % PAGE);
        assert_eq!(self.open[page].load(Relaxed), 1, "place {place} is closed");
        &self.words[page][offset / 8]
    }

    fn bits(&self, place: Place) -> &AtomicU64 {
        &self.bits[place as usize / PAGE]
    }
}

struct Arena {
    places: Places,
    memory: Memory,
}

impl Arena {
    /// Makes an arena in which page 0 is in use.
    fn new() -> Arc<Arena> {
        let free = std::array::from_fn(|_| FreeList { head: AtomicU64::new(0) });
        let next = AtomicU64::new(PAGE as u64);
        let places = Places { next, next_small: AtomicU32::new(0), free };
        let memory = Memory {
            open: Default::default(),
            words: Default::default(),
            bits: Default::default(),
        };
        Arc::new(Arena { places, memory })
    }

    /// Claims a block and uses it: it must be open, zeroed and not in use.
    fn claim(&self, bytes: usize) -> Place {
        let class = class(bytes).expect("a class");
        let place = self.places.claim(class, &self.memory).expect("room");
        assert_eq!(self.memory.word(place).swap(-1, Relaxed), 0, "place {place} is in use");
        place
    }

    /// Releases a block, as its only owner.
    fn release(&self, bytes: usize, place: Place) {
        assert!(self.destroy(bytes, place), "place {place} was not in use");
    }

    /// Releases a block, as one of several threads that may own it. Returns `true` if this one did.
    fn destroy(&self, bytes: usize, place: Place) -> bool {
        if !self.places.take_back(place, &self.memory) {
            return false;
        }
        assert_eq!(self.memory.word(place).swap(0, Relaxed), -1, "place {place} is free");
        self.places.free(class(bytes).expect("a class"), place, &self.memory);
        true
    }

    /// Returns the number of freed blocks of a size. None of them can be given back again.
    fn free(&self, bytes: usize) -> usize {
        let list = &self.places.free[class(bytes).expect("a class")];
        std::iter::from_fn(|| list.pop(|place| self.memory.word(place)))
            .inspect(|&place| assert!(!self.places.take_back(place, &self.memory), "{place}"))
            .count()
    }

    fn pages_handed_out(&self) -> usize {
        self.places.next.load(Relaxed) as usize / PAGE - 1
    }
}

#[test]
fn small_blocks_are_cut_from_one_page_and_no_page_is_lost() {
    explore::all("places, 2 threads, the first small blocks", || {
        let arena = Arena::new();
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || theirs.claim(8));
        let mine = arena.claim(8);
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(arena.free(PAGE), arena.pages_handed_out() - 1, "pages that nobody has");
    });
}

#[test]
fn a_page_is_cut_by_several_threads_at_once() {
    explore::all("places, 2 threads, a page that is there", || {
        let arena = Arena::new();
        let first = arena.claim(8);
        let claim = |arena: &Arc<Arena>| {
            let arena = Arc::clone(arena);
            move || arena.claim(8)
        };
        let others = [thread::spawn(claim(&arena)), thread::spawn(claim(&arena))];
        let mut places = others.map(|other| other.join().unwrap());
        places.sort_unstable();
        assert_eq!(places, [first + 8, first + 16]);
    });
}

#[test]
fn the_next_page_comes_when_one_is_full() {
    explore::bounded(2, "places, 2 threads, a page that is full", || {
        let arena = Arena::new();
        let first = arena.claim(8);
        arena.places.next_small.store(first + PAGE as Place, Relaxed);
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || theirs.claim(8));
        let mut places = [arena.claim(8), other.join().unwrap(), arena.claim(8)];
        places.sort_unstable();
        // The first three words of the page that is in use now.
        let page = places[0] / PAGE as Place * PAGE as Place;
        assert_eq!(places, [0, 8, 16].map(|offset| page + offset));
        assert_eq!(arena.free(PAGE), arena.pages_handed_out() - 2, "pages that nobody has");
    });
}

#[test]
fn pages_are_claimed_freed_and_claimed_again() {
    explore::bounded(2, "places, 2 threads, pages", || {
        let arena = Arena::new();
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || {
            let place = theirs.claim(PAGE);
            theirs.release(PAGE, place);
            theirs.claim(PAGE)
        });
        let mine = arena.claim(PAGE);
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(arena.free(PAGE), arena.pages_handed_out() - 2, "pages that nobody has");
    });
}

#[test]
fn of_two_copies_one_gives_the_block_back() {
    explore::all("places, 2 threads, copies", || {
        let arena = Arena::new();
        let place = arena.claim(PAGE);
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || theirs.destroy(PAGE, place));
        let mine = arena.destroy(PAGE, place);
        assert_ne!(mine, other.join().unwrap());
        assert_ne!(arena.claim(PAGE), arena.claim(PAGE));
    });
}

/// Each of two threads takes a block that the other one may have given back, and has a neighbour in
/// the word of bits.
#[test]
fn whoever_owns_a_block_can_give_it_back() {
    explore::bounded(2, "places, 2 threads, owners", || {
        let arena = Arena::new();
        let places = [(); 2].map(|()| arena.claim(8));
        let theirs = Arc::clone(&arena);
        let life = |arena: &Arena, place| {
            arena.release(8, place);
            let next = arena.claim(8);
            arena.release(8, next);
        };
        let other = thread::spawn(move || life(&theirs, places[0]));
        life(&arena, places[1]);
        other.join().unwrap();
        assert_eq!(arena.free(8), 2);
    });
}

#[test]
fn a_block_that_is_looked_at_before_it_is_noted_is_caught() {
    explore::expect_failure("places, copies, two steps", || {
        let arena = Arena::new();
        let place = arena.claim(PAGE);
        // Like `destroy`, with a load and a store.
        let destroy = move |arena: &Arena| {
            let bits = arena.memory.bits(place);
            let seen = bits.load(Relaxed);
            if seen == 0 {
                bits.store(1, Relaxed);
                arena.memory.word(place).store(0, Relaxed);
                arena.places.free(class(PAGE).expect("a class"), place, &arena.memory);
            }
        };
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || destroy(&theirs));
        destroy(&arena);
        other.join().unwrap();
        assert_ne!(arena.claim(PAGE), arena.claim(PAGE));
    });
}

#[test]
fn a_page_that_nobody_waits_for_is_caught() {
    explore::expect_failure("places, a page that is dropped", || {
        let arena = Arena::new();
        let theirs = Arc::clone(&arena);
        // Like the claim of a small block, but a thread that finds another's page abandons its own.
        let claim = |arena: &Arena| {
            let page = arena.claim(PAGE);
            let small = &arena.places.next_small;
            let _ = small.compare_exchange(0, page + 8, Relaxed, Relaxed);
        };
        let other = thread::spawn(move || claim(&theirs));
        claim(&arena);
        other.join().unwrap();
        assert_eq!(arena.free(PAGE), arena.pages_handed_out() - 1, "pages that nobody has");
    });
}
