//! The regions that the fault handler finds by an address. Regions are inserted and removed while
//! handlers search.
//!
//! A handler searches all regions, without a lock. It writes only to this structure.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};

use crate::access::lookers::Lookers;
use crate::access::pages::{Pages, Shared};
use crate::tiers::tracked::OfRegion;

/// Time to wait for a handler. A handler nearly always runs and soon returns: no handler that still
/// runs takes this long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of regions.
const MAX_REGIONS: usize = 256;

/// Regions by their addresses.
#[derive(Debug)]
pub(crate) struct Directory {
    regions: [AtomicPtr<Shared>; MAX_REGIONS],
    /// End of the entries in use: no region is at this index or above.
    used: AtomicUsize,
    looking: Lookers,
}

impl Directory {
    pub(crate) const fn new() -> Directory {
        Directory {
            regions: [const { AtomicPtr::new(ptr::null_mut()) }; MAX_REGIONS],
            used: AtomicUsize::new(0),
            looking: Lookers { word: AtomicU64::new(0) },
        }
    }

    /// Inserts a region. Returns `false` if there are too many regions.
    pub(crate) fn insert(&self, pages: &Pages) -> bool {
        let free = |place: &usize| {
            let region = &self.regions[*place];
            region.compare_exchange(ptr::null_mut(), pages.as_ptr(), Release, Relaxed).is_ok()
        };
        let place = (0..MAX_REGIONS).find(free);
        if let Some(place) = place {
            self.used.fetch_max(place + 1, Release);
        }
        place.is_some()
    }

    /// Removes a region. A handler may still use it: see
    /// [`wait_for_lookers`](Directory::wait_for_lookers).
    pub(crate) fn remove(&self, shared: &Shared) {
        let region = ptr::from_ref(shared).cast_mut();
        for place in &self.regions {
            let _ = place.compare_exchange(region, ptr::null_mut(), Relaxed, Relaxed);
        }
    }

    /// Returns `true` if the region is in the directory.
    pub(crate) fn has(&self, shared: &Shared) -> bool {
        self.in_use().any(|region| ptr::eq(region, shared))
    }

    /// Waits until no handler uses a removed region. Returns `false` if one still does after a
    /// second: then the memory of the removed region must stay.
    pub(crate) fn wait_for_lookers(&self) -> bool {
        let end = Instant::now() + PATIENCE;
        while self.looking.count() != 0 {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    }

    fn in_use(&self) -> impl Iterator<Item = *const Shared> + '_ {
        let places = &self.regions[..self.used.load(Acquire)];
        places.iter().map(|place| place.load(Acquire).cast_const())
    }

    /// Passes the region and the grain at an address to `body`. Async-signal-safe.
    pub(crate) fn look_up<T>(
        &self,
        address: usize,
        body: impl FnOnce(Option<(&Shared, usize)>) -> T,
    ) -> T {
        self.looking.look(|| {
            let found = self.in_use().find_map(|region| {
                // SAFETY: a region that was inserted stays allocated while a thread looks (see
                // `wait_for_lookers`).
                let shared = unsafe { region.as_ref() }?;
                shared.layout.grain_of(address).map(|grain| (shared, grain))
            });
            body(found)
        })
    }

    /// Passes a region that overlaps a range to `body`; returns `None` if there is none.
    pub(crate) fn overlapping<T>(
        &self,
        range: &Range<usize>,
        body: impl FnOnce(&Shared) -> T,
    ) -> Option<T> {
        self.looking.look(|| {
            // SAFETY: a region that was inserted stays allocated while this thread looks.
            let mut regions = self.in_use().filter_map(|region| unsafe { region.as_ref() });
            regions.find(|shared| shared.layout.overlaps(range)).map(body)
        })
    }

    /// Returns the memory that a lookup and the handling of its region read or write: this
    /// structure, and the bookkeeping of each region.
    pub(crate) fn places(&self) -> Vec<Range<usize>> {
        let start = ptr::from_ref(self).addr();
        let mut places = Vec::new();
        places.push(start..start + size_of::<Directory>());
        self.looking.look(|| {
            // SAFETY: a region that was inserted stays allocated while this thread looks.
            let regions = self.in_use().filter_map(|region| unsafe { region.as_ref() });
            for region in regions {
                places.push(region.mapping());
                places.extend(region.tiers().map(OfRegion::mapping));
            }
        });
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::pages::Layout;
    use crate::sys::memory;
    use percid_rules::scan::Width;

    fn pages(start: usize) -> Pages {
        let (bytes, width) = (3 << 16, Width::Bits64);
        let layout = Layout {
            start,
            bytes,
            shift: 16,
            nodes: 1,
            rights: 0,
            width,
            backoff: false,
            anonymous: true,
        };
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
    fn a_child_waits_for_no_thread_of_its_parent() {
        let directory = Directory::new();
        let status = directory.look_up(0, |_| {
            // SAFETY: the child checks whether threads look, and exits.
            match unsafe { libc::fork() } {
                // SAFETY: ends the child at once.
                0 => unsafe { libc::_exit(i32::from(directory.wait_for_lookers())) },
                child => {
                    let mut status = 0;
                    // SAFETY: the status has a valid place.
                    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                    libc::WEXITSTATUS(status)
                }
            }
        });
        assert_eq!(status, 1);
        assert!(directory.wait_for_lookers());
    }

    #[test]
    fn a_full_directory_says_so_and_places_are_used_again() {
        let directory = Directory::new();
        let all: Vec<Pages> = (0..MAX_REGIONS + 1).map(|place| pages(place << 20)).collect();
        assert_eq!(all.iter().filter(|pages| directory.insert(pages)).count(), MAX_REGIONS);
        directory.remove(&all[7]);
        assert!(directory.insert(&all[MAX_REGIONS]) && !directory.insert(&all[7]));
    }
}
