//! The arena's places against a map of the owners: blocks do not overlap, are aligned, lie in open
//! memory of one extent, and nothing is lost between them.
#![no_main]

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

use free_list::FreeList;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use places::{CLASSES, EXTENTS, FIRST, Ground, PAGE, Place, Places, SHIFT, STRIDE, WORD, class};

/// The library's own files: they are private there.
#[path = "../../crates/percid/src/arena/free_list.rs"]
mod free_list;
#[path = "../../crates/percid/src/arena/given_back.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod given_back;
#[path = "../../crates/percid/src/arena/places.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
mod places;

/// The same as in the library.
mod sys {
    pub(crate) mod atomic {
        pub(crate) use std::sync::atomic::*;
    }
}

#[derive(Arbitrary, Debug)]
struct Input {
    /// Extents from this one on cannot be opened.
    extents: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Claim {
        power: u8,
        more: u8,
        times: u8,
    },
    Release {
        which: u16,
        times: u8,
    },
    /// Gives one back a second time.
    ReleaseAgain {
        which: u8,
    },
}

fuzz_target!(|input: Input| {
    let free = std::array::from_fn(|_| FreeList { head: AtomicU64::new(0) });
    let mut both = Both {
        places: Places { next: AtomicU64::new(FIRST), next_small: AtomicU32::new(0), free },
        ground: Anywhere { limit: usize::from(input.extents % 80), ..Anywhere::default() },
        owned: BTreeMap::new(),
        given_back: Vec::new(),
    };
    for step in input.steps {
        match step {
            Step::Claim { power, more, times } => {
                let power = usize::from(power % 26);
                let bytes = (1usize << power) + (1usize << power) / 256 * usize::from(more);
                (0..times % 32).for_each(|_| both.claim(bytes));
            }
            Step::Release { which, times } => {
                (0..times % 32).for_each(|_| both.release(which.into()));
            }
            Step::ReleaseAgain { which } => both.release_again(which.into()),
        }
    }
    both.check_sum();
});

/// Words that come when they are looked at.
#[derive(Default)]
struct Anywhere {
    words: RefCell<HashMap<Place, Box<AtomicI64>>>,
    bits: RefCell<HashMap<usize, Box<AtomicU64>>>,
    open: RefCell<BTreeMap<usize, usize>>,
    limit: usize,
}

impl Ground for Anywhere {
    fn open(&self, extent: usize, end: usize) -> bool {
        assert!(extent < EXTENTS && end <= STRIDE);
        if extent >= self.limit {
            return false;
        }
        let mut open = self.open.borrow_mut();
        let open = open.entry(extent).or_insert(0);
        *open = end.max(*open);
        true
    }

    fn word(&self, place: Place) -> &AtomicI64 {
        let (extent, offset) = ((place >> SHIFT) as usize, place as usize % STRIDE);
        let open = self.open.borrow().get(&extent).copied().unwrap_or(0);
        assert!(offset + WORD <= open, "place {place:x} is closed");
        let mut words = self.words.borrow_mut();
        let word = &raw const **words.entry(place).or_default();
        // SAFETY: the box is neither moved nor dropped before `self`.
        unsafe { &*word }
    }

    fn bits(&self, place: Place) -> &AtomicU64 {
        let offset = given_back::word_at(place as usize % STRIDE);
        let index = (place >> SHIFT) as usize * STRIDE + offset;
        let mut bits = self.bits.borrow_mut();
        let bits = &raw const **bits.entry(index).or_default();
        // SAFETY: the box is neither moved nor dropped before `self`.
        unsafe { &*bits }
    }
}

/// The places and their model.
struct Both {
    places: Places,
    ground: Anywhere,
    /// The size of each block in use, by its place.
    owned: BTreeMap<usize, usize>,
    given_back: Vec<(usize, usize)>,
}

impl Both {
    fn claim(&mut self, bytes: usize) {
        let Some(class) = class(bytes) else { return assert!(bytes > STRIDE) };
        let size = WORD << class;
        assert!(size >= bytes && (size == WORD || size / 2 < bytes), "{size} for {bytes}");
        let Some(place) = self.places.claim(class, &self.ground) else {
            return self.check_full(class);
        };
        let place = place as usize;
        assert!(place.is_multiple_of(size.min(PAGE)), "{place:x} of {size}");
        assert_eq!(place / STRIDE, (place + size - 1) / STRIDE, "in two extents");
        let open = self.ground.open.borrow()[&(place / STRIDE)];
        assert!(place % STRIDE + size <= open, "{place:x} of {size} is not open");
        let before = self.owned.range(..=place).next_back();
        assert!(before.is_none_or(|(other, size)| other + size <= place), "{place:x} overlaps");
        let behind = self.owned.range(place..).next();
        assert!(behind.is_none_or(|(other, _)| place + size <= *other), "{place:x} overlaps");
        self.owned.insert(place, size);
        self.given_back.retain(|(other, _)| *other != place);
        assert_eq!(self.ground.word(place as Place).load(Relaxed), 0, "its first word");
        // An owner's value, which must not be taken for a link.
        self.ground.word(place as Place).store(-1, Relaxed);
    }

    /// Checks that there is nothing of this size or above, neither free nor new.
    fn check_full(&self, class: usize) {
        let free = |class: usize| self.places.free[class].head.load(Relaxed) as u32 != 0;
        assert!(!(class..CLASSES).any(free), "a free one was not taken");
        let next = self.places.next.load(Relaxed) as usize;
        let room = (WORD << class).max(PAGE);
        // A block that starts in this extent or the next one.
        let last = (next + room).next_multiple_of(STRIDE) / STRIDE + 1;
        assert!(last >= self.ground.limit.min(EXTENTS), "a new one was not taken");
    }

    fn release(&mut self, which: usize) {
        let index = which % self.owned.len().max(1);
        let Some((&place, &size)) = self.owned.iter().nth(index) else { return };
        self.owned.remove(&place);
        assert!(self.places.take_back(place as Place, &self.ground), "{place:x} has an owner");
        self.ground.word(place as Place).store(0, Relaxed);
        self.places.free(class(size).expect("a class"), place as Place, &self.ground);
        self.given_back.push((place, size));
    }

    fn release_again(&mut self, which: usize) {
        let index = which % self.given_back.len().max(1);
        let Some(&(place, size)) = self.given_back.get(index) else { return };
        // Unless it was cut into smaller ones, or a smaller one begins there.
        let cut = self.owned.range(place..place + size).next().is_some();
        if !cut && !self.is_split(place) {
            assert!(!self.places.take_back(place as Place, &self.ground), "{place:x} has no owner");
        }
    }

    /// Returns `true` if a free block was halved: then its places belong to other blocks.
    fn is_split(&self, place: usize) -> bool {
        let bits = self.ground.bits(place as Place).load(Relaxed);
        bits >> (place / WORD % 64) & 1 == 0
    }

    /// Checks that every byte was assigned, is free, is in a page of small blocks, or could not be
    /// opened.
    fn check_sum(&self) {
        let owned: usize = self.owned.values().sum();
        let pop = |class: usize| {
            let free = &self.places.free[class];
            std::iter::from_fn(|| free.pop(|place| self.ground.word(place))).count()
                * (WORD << class)
        };
        let free: usize = (0..CLASSES).map(pop).sum();
        let small = self.places.next_small.load(Relaxed) as usize;
        let rest = small.next_multiple_of(PAGE) - small;
        let next = self.places.next.load(Relaxed) as usize - FIRST as usize;
        if self.ground.limit >= EXTENTS {
            // Less than a line is lost if a small block is aligned in its page.
            assert!(owned + free + rest <= next, "{owned} + {free} + {rest} of {next}");
        }
    }
}
