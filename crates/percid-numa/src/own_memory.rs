//! percid's own memory as regions: what every ID has in the arena, and the slabs of a pool.
//!
//! An ID's memory lies where it was first used. An ID stays with its CPU, but not for ever: a thread that
//! moves to another node and takes over an ID there finds its counters far away. Nobody but whoever has the ID
//! uses that memory, so one word says it all: [`IdRegions::touch`].

use std::ops::Range;

use percid::Source;
use percid::id::memory_of;
use percid::pool::RawPool;

use crate::balancer::Balancer;
use crate::error::RegisterError;
use crate::region::Region;

/// The memory of all IDs of a source; see [`Balancer::register_ids`].
#[derive(Debug)]
pub struct IdRegions {
    source: Source,
    /// By ID: one for each extent of the arena that is in use.
    regions: Vec<Vec<Region>>,
}

impl IdRegions {
    /// Says that the calling thread uses the memory of the ID that it has now, which the counters, stacks and
    /// other structures of its source do. To be called now and then: once per period is enough.
    ///
    /// Async-signal-safe. Costs some 40 ns, and for every armed page of the ID what
    /// [`Region::touch`] costs.
    pub fn touch(&self) {
        let id = self.source.current_id();
        let own = id.and_then(|id| self.regions.get(id as usize));
        own.into_iter().flatten().for_each(Region::touch_all);
    }

    /// The regions of an ID; none if it did not exist when they were registered.
    pub fn of_id(&self, id: u32) -> &[Region] {
        self.regions.get(id as usize).map_or(&[], Vec::as_slice)
    }
}

impl Balancer {
    /// Registers the memory of all IDs of a source that exist by now; for later ones drop what this returns and
    /// register again. All structures of that source have their copies there.
    ///
    /// # Errors
    ///
    /// That of [`register`](Balancer::register) for the first region that cannot be registered.
    pub fn register_ids(&self, source: Source) -> Result<IdRegions, RegisterError> {
        let regions = (0..source.ids_seen()).map(|id| self.register_all(memory_of(id)));
        Ok(IdRegions { source, regions: regions.collect::<Result<_, _>>()? })
    }

    /// Registers the slabs that a pool has by now: one region for all that lie side by side. Who uses an
    /// object says so by its address: `region.touch(address - region.range().start)`.
    ///
    /// # Errors
    ///
    /// As [`register_ids`](Balancer::register_ids).
    pub fn register_pool(&self, pool: &RawPool) -> Result<Vec<Region>, RegisterError> {
        let mut slabs = pool.slabs();
        slabs.sort_unstable_by_key(|slab| slab.start);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for slab in slabs {
            match runs.last_mut().filter(|run| run.end == slab.start) {
                Some(run) => run.end = slab.end,
                None => runs.push(slab),
            }
        }
        self.register_all(runs)
    }

    fn register_all(
        &self,
        ranges: impl IntoIterator<Item = Range<usize>>,
    ) -> Result<Vec<Region>, RegisterError> {
        let register = |range: Range<usize>| {
            self.register(std::ptr::with_exposed_provenance(range.start), range.len())
        };
        ranges.into_iter().map(register).collect()
    }
}
