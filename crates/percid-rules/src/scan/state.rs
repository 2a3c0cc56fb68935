//! What a scan remembers: the regions of a process, and how far it has come.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use super::region::{Memory, Tracked, Traits};
use super::settings::Settings;

/// The scan of a process: its regions and what is remembered of them.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// By ascending address.
    pub(super) regions: Vec<Tracked>,
    pub(super) sequence: i64,
    /// Where the next pass begins.
    pub(super) offset: u64,
}

impl Scan {
    /// A scan that has no regions.
    pub fn new() -> Scan {
        Scan::default()
    }

    /// Adds a region. Returns whether it did: it does not overlap another one and is not empty.
    pub fn add(&mut self, range: Range<u64>, traits: Traits) -> bool {
        let place = self.first_above(range.start);
        let free = self.regions.get(place).is_none_or(|next| range.end <= next.range.start);
        if range.is_empty() || !free {
            return false;
        }
        self.regions.insert(place, Tracked { range, traits, memory: None });
        true
    }

    /// Counts a region as first visited at `now`, which is measured as for a pass, unless it was: its
    /// scan delay begins. Otherwise that happens in the first pass that comes to it.
    pub fn visit(&mut self, start: u64, now: Duration, settings: &Settings) {
        let sequence = self.sequence;
        if let Some(region) = self.at(start) {
            region.memory.get_or_insert_with(|| Memory::new(now, sequence, settings));
        }
    }

    /// How many sequences have begun since a region was first visited.
    pub fn sequences_of(&self, start: u64) -> i64 {
        let place = self.regions.binary_search_by_key(&start, |region| region.range.start);
        let memory = place.ok().and_then(|place| self.regions[place].memory.as_ref());
        memory.map_or(0, |memory| self.sequence - memory.first)
    }

    /// Forgets the region that starts at `start`. Returns whether there was one.
    pub fn remove(&mut self, start: u64) -> bool {
        let found = self.regions.iter().position(|region| region.range.start == start);
        found.map(|place| self.regions.remove(place)).is_some()
    }

    /// Replaces all regions. Those that start where one started before keep what is remembered of
    /// it. Regions that [`Scan::add`] would refuse are left out.
    pub fn remap(&mut self, regions: impl IntoIterator<Item = (Range<u64>, Traits)>) {
        let before = core::mem::take(&mut self.regions);
        for (range, traits) in regions {
            let start = range.start;
            let known = before.binary_search_by_key(&start, |old| old.range.start);
            self.add(range, traits);
            if let Some(region) = self.at(start) {
                region.memory = known.ok().and_then(|place| before[place].memory.clone());
            }
        }
    }

    /// The traits of a region have changed.
    pub fn set_traits(&mut self, start: u64, traits: Traits) {
        if let Some(region) = self.at(start) {
            region.traits = traits;
        }
    }

    /// Threads, by their bits (see [`Width::bit`](super::Width::bit)), were seen to use a region.
    /// Before the first pass over it that is not remembered.
    pub fn used_by(&mut self, start: u64, threads: u128) {
        if let Some(memory) = self.at(start).and_then(|region| region.memory.as_mut()) {
            memory.activity.add(threads);
        }
    }

    /// How many distinct bits the users of a region have, in this window of activity and the one
    /// before.
    pub fn users(&self, start: u64) -> u32 {
        let region = self.regions.iter().find(|region| region.range.start == start);
        region.and_then(|region| region.memory.as_ref()).map_or(0, |known| known.activity.len())
    }

    /// How often all regions have been walked.
    pub fn sequence(&self) -> i64 {
        self.sequence
    }

    /// Counts the sequences from 0 again, as Linux does when the only thread of a process creates
    /// another one. All else is remembered.
    pub fn restart_sequences(&mut self) {
        self.sequence = 0;
    }

    /// The memory of all regions, in bytes.
    pub fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.range.end - region.range.start).sum()
    }

    fn at(&mut self, start: u64) -> Option<&mut Tracked> {
        let place = self.regions.binary_search_by_key(&start, |region| region.range.start).ok()?;
        self.regions.get_mut(place)
    }

    /// The index of the first region that ends above an address.
    pub(super) fn first_above(&self, address: u64) -> usize {
        self.regions.partition_point(|region| region.range.end <= address)
    }

    pub(super) fn next_sequence(&mut self) {
        self.sequence += 1;
        self.offset = 0;
    }
}
