//! The threads of a scene.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use percid_numa::Region;

use super::scene::Scene;
use crate::numa::area::{Area, PAGE};
use crate::pinning;
use crate::random::Random;

/// The shared data of the threads of a scene.
#[derive(Debug)]
pub(super) struct Team<'a> {
    pub(super) scene: Scene,
    pub(super) area: &'a Area,
    /// The region, if accesses are reported.
    pub(super) region: Option<&'a Region>,
    pub(super) places: &'a [Place],
    pub(super) stage: AtomicUsize,
    pub(super) stop: AtomicBool,
    /// Pages used so far by all threads.
    pub(super) uses: AtomicU64,
    pub(super) seed: u64,
}

/// The place where a thread runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) node: u32,
    pub(super) cpu: u32,
}

impl Team<'_> {
    /// Runs a thread.
    pub(super) fn work(&self, number: usize) {
        pinning::restrict(0, &[self.places[number].cpu]);
        let mut random = Random::new(self.seed, number as u64);
        while !self.stop.load(Relaxed) {
            let (stage, pages) = (self.stage.load(Relaxed), self.area.pages());
            let own = self.scene.own(stage, number, self.places.len(), pages);
            let mut used = own.len();
            own.for_each(|page| self.use_page(page));
            let common = self.scene.common(pages);
            if !common.is_empty() {
                // From another page on each time, or the first thread of a round would always be
                // the first at every page.
                let first = random.below(common.len());
                let around = (first..common.len()).chain(0..first);
                around.for_each(|place| self.use_page(common.start + place));
                used += common.len();
            }
            self.uses.fetch_add(used as u64, Relaxed);
        }
    }

    fn use_page(&self, page: usize) {
        if let Some(region) = self.region {
            region.touch(page * PAGE);
        }
        self.area.word(page).fetch_add(1, Relaxed);
    }
}
