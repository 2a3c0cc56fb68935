//! The state of a scan: the regions of a process and the progress through them.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use super::region::{Memory, Tracked, Traits};
use super::settings::Settings;

/// The scan of a process: its regions and their recorded state.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The regions, sorted by ascending address.
    pub(super) regions: Vec<Tracked>,
    pub(super) sequence: i64,
    /// The address at which the next pass begins.
    pub(super) offset: u64,
}

impl Scan {
    /// Creates a scan without regions.
    pub fn new() -> Scan {
        Scan::default()
    }

    /// Adds a region. Returns `true` if it did: the region is not empty and does not overlap
    /// another one.
    pub fn add(&mut self, range: Range<u64>, traits: Traits) -> bool {
        let place = self.first_above(range.start);
        let free = self.regions.get(place).is_none_or(|next| range.end <= next.range.start);
        if range.is_empty() || !free {
            return false;
        }
        self.regions.insert(place, Tracked { range, traits, memory: None });
        true
    }

    /// Counts a region as first visited at `now`, unless it was visited before: its scan delay
    /// begins. The time is measured as for a pass. Without this call the first pass that reaches
    /// the region does so.
    pub fn visit(&mut self, start: u64, now: Duration, settings: &Settings) {
        let sequence = self.sequence;
        if let Some(region) = self.tracked_mut(start) {
            region.memory.get_or_insert_with(|| Memory::new(now, sequence, settings));
        }
    }

    /// Returns the number of sequences that have begun since a region was first visited.
    pub fn sequences_of(&self, start: u64) -> i64 {
        let place = self.regions.binary_search_by_key(&start, |region| region.range.start);
        let memory = place.ok().and_then(|place| self.regions[place].memory.as_ref());
        memory.map_or(0, |memory| self.sequence - memory.first)
    }

    /// Removes the region that starts at `start`. Returns `true` if there was one.
    pub fn remove(&mut self, start: u64) -> bool {
        let found = self.regions.iter().position(|region| region.range.start == start);
        found.map(|place| self.regions.remove(place)).is_some()
    }

    /// Replaces all regions. A region that starts at the same address as an old one keeps its
    /// state. Regions that [`Scan::add`] would refuse are left out.
    pub fn remap(&mut self, regions: impl IntoIterator<Item = (Range<u64>, Traits)>) {
        let before = core::mem::take(&mut self.regions);
        for (range, traits) in regions {
            let start = range.start;
            let known = before.binary_search_by_key(&start, |old| old.range.start);
            self.add(range, traits);
            if let Some(region) = self.tracked_mut(start) {
                region.memory = known.ok().and_then(|place| before[place].memory.clone());
            }
        }
    }

    /// Changes the traits of a region.
    pub fn set_traits(&mut self, start: u64, traits: Traits) {
        if let Some(region) = self.tracked_mut(start) {
            region.traits = traits;
        }
    }

    /// Records that threads, given by their bits (see [`Width::bit`](super::Width::bit)), used a
    /// region. Has no effect before the first pass over the region.
    pub fn used_by(&mut self, start: u64, threads: u128) {
        if let Some(memory) = self.tracked_mut(start).and_then(|region| region.memory.as_mut()) {
            memory.activity.add(threads);
        }
    }

    /// Returns the number of distinct bits of a region's users, in this window of activity and the
    /// one before.
    pub fn users(&self, start: u64) -> u32 {
        let region = self.regions.iter().find(|region| region.range.start == start);
        region.and_then(|region| region.memory.as_ref()).map_or(0, |known| known.activity.len())
    }

    /// Returns the number of times that all regions have been visited.
    pub fn sequence(&self) -> i64 {
        self.sequence
    }

    /// Restarts the sequence count at 0, as Linux does when the only thread of a process creates
    /// another one. All other state is kept.
    pub fn restart_sequences(&mut self) {
        self.sequence = 0;
    }

    /// Returns the size of all regions in bytes.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.range.end - region.range.start).sum()
    }

    fn tracked_mut(&mut self, start: u64) -> Option<&mut Tracked> {
        let place = self.regions.binary_search_by_key(&start, |region| region.range.start).ok()?;
        self.regions.get_mut(place)
    }

    /// Returns the index of the first region that ends above an address.
    pub(super) fn first_above(&self, address: u64) -> usize {
        self.regions.partition_point(|region| region.range.end <= address)
    }

    pub(super) fn next_sequence(&mut self) {
        self.sequence += 1;
        self.offset = 0;
    }
}
