//! The regions that a handler of faults finds by an address: entered and taken out while it looks.
//!
//! It looks through all of them, without a lock and without writing to anything but this.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Relaxed, Release, SeqCst},
};

use super::pages::{Pages, Shared};
use crate::turn::Patience;

/// The most regions.
const MOST: usize = 256;

/// Regions by their addresses.
#[derive(Debug)]
pub(super) struct Directory {
    regions: [AtomicPtr<Shared>; MOST],
    /// No region is at or above this place.
    used: AtomicUsize,
    /// How many handlers are looking.
    looking: AtomicUsize,
}

impl Directory {
    pub(super) const fn new() -> Directory {
        Directory {
            regions: [const { AtomicPtr::new(ptr::null_mut()) }; MOST],
            used: AtomicUsize::new(0),
            looking: AtomicUsize::new(0),
        }
    }

    /// Enters a region. `false`: there are too many.
    pub(super) fn insert(&self, pages: &Pages) -> bool {
        let free = |place: &usize| {
            let region = &self.regions[*place];
            region.compare_exchange(ptr::null_mut(), pages.as_ptr(), Release, Relaxed).is_ok()
        };
        let place = (0..MOST).find(free);
        if let Some(place) = place {
            self.used.fetch_max(place + 1, SeqCst);
        }
        place.is_some()
    }

    /// Takes a region out. A handler may still look at it: see
    /// [`wait_for_lookers`](Directory::wait_for_lookers).
    pub(super) fn remove(&self, pages: &Pages) {
        for region in &self.regions {
            let _ = region.compare_exchange(pages.as_ptr(), ptr::null_mut(), SeqCst, Relaxed);
        }
    }

    /// Waits until no handler looks at what was taken out. `false`: one does for a second (a child of `fork` waits
    /// for nobody), so the memory of what was taken out must stay.
    pub(super) fn wait_for_lookers(&self) -> bool {
        let mut patience = Patience::default();
        // SeqCst: a handler that announced itself too late to be seen here sees the empty place.
        while self.looking.load(SeqCst) != 0 {
            if patience.is_exhausted() {
                return false;
            }
            patience.wait();
        }
        true
    }

    /// Hands the region and the grain at an address to `body`. Async-signal-safe.
    pub(super) fn look_up<T>(
        &self,
        address: usize,
        body: impl FnOnce(Option<(&Shared, usize)>) -> T,
    ) -> T {
        self.looking.fetch_add(1, SeqCst);
        let places = &self.regions[..self.used.load(SeqCst)];
        let found = places.iter().find_map(|place| {
            // SAFETY: what was entered stays while a handler looks (see `wait_for_lookers`).
            let shared = unsafe { place.load(SeqCst).as_ref() }?;
            shared.layout.grain_of(address).map(|grain| (shared, grain))
        });
        let result = body(found);
        self.looking.fetch_sub(1, SeqCst);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::Width;
    use super::super::pages::Layout;
    use super::*;
    use crate::sys::memory;

    fn pages(start: usize) -> Pages {
        let (bytes, width) = (3 << 16, Width::Bits64);
        let layout = Layout { start, bytes, shift: 16, nodes: 1, rights: 0, width, backoff: false };
        Pages::new(layout, &[0], memory::map).expect("memory")
    }

    #[test]
    fn regions_are_found_by_any_of_their_addresses() {
        let directory = Directory::new();
        let (one, other) = (pages(1 << 20), pages(1 << 30));
        assert!(directory.insert(&one) && directory.insert(&other));
        let find = |address| {
            directory
                .look_up(address, |found| found.map(|(shared, grain)| (shared.layout.start, grain)))
        };
        assert_eq!(find((1 << 20) + (2 << 16) + 5), Some((1 << 20, 2)));
        assert_eq!((find((1 << 20) + (3 << 16)), find((1 << 20) - 1)), (None, None));
        directory.remove(&one);
        assert!(directory.wait_for_lookers());
        assert_eq!((find(1 << 20), find(1 << 30)), (None, Some((1 << 30, 0))));
    }

    #[test]
    fn a_full_directory_says_so_and_places_are_used_again() {
        let directory = Directory::new();
        let all: Vec<Pages> = (0..MOST + 1).map(|place| pages(place << 20)).collect();
        assert_eq!(all.iter().filter(|pages| directory.insert(pages)).count(), MOST);
        directory.remove(&all[7]);
        assert!(directory.insert(&all[MOST]) && !directory.insert(&all[7]));
    }
}
