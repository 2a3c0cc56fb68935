//! percid's own memory as regions: the arena's memory of every ID, and the slabs of a pool.
//!
//! An ID's memory is on the node where it was first used. An ID stays with its CPU, but not
//! forever: if a thread moves to another node and takes over an ID there, its counters are remote.
//! Only the thread that has the ID uses that memory, so one call reports the use:
//! [`IdRegions::touch`].

use std::ops::Range;

use percid::Source;
use percid::id::memory_of;
use percid::pool::RawPool;

use crate::balancer::Balancer;
use crate::error::RegisterError;
use crate::region::Region;

/// The memory of all IDs of a source; see [`Balancer::register_ids`].
///
/// ```
/// use percid::Source;
/// use percid_numa::{Balancer, IdRegions};
///
/// let ids: IdRegions = Balancer::new().register_ids(Source::Atomic)?;
/// ids.touch();
/// # Ok::<(), percid_numa::RegisterError>(())
/// ```
#[derive(Debug)]
pub struct IdRegions {
    source: Source,
    /// The regions of each ID: one for each extent of the arena that is in use.
    regions: Vec<Vec<Region>>,
}

impl IdRegions {
    /// Reports that the calling thread uses the memory of its present ID, as its counters, stacks
    /// and other structures of the source do. Call it periodically: once per period is enough.
    ///
    /// Async-signal-safe. Costs about 40 ns, and for every armed page of the ID the cost of
    /// [`Region::touch`].
    ///
    /// ```
    /// use percid::Source;
    ///
    /// let ids = percid_numa::Balancer::new().register_ids(Source::Atomic)?;
    /// std::thread::scope(|scope| _ = scope.spawn(|| ids.touch()));
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn touch(&self) {
        let id = self.source.current_id();
        let own = id.and_then(|id| self.regions.get(id as usize));
        own.into_iter().flatten().for_each(Region::touch_all);
    }

    /// Returns the regions of an ID; none if it did not exist when they were registered.
    ///
    /// ```
    /// use percid::{Counter, Source};
    ///
    /// let counter = Counter::with_source(Source::Atomic).expect("every system has atomics");
    /// counter.add(1);
    /// let ids = percid_numa::Balancer::new().register_ids(Source::Atomic)?;
    /// assert!(!ids.of_id(0).is_empty());
    /// assert!(ids.of_id(u32::MAX).is_empty());
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn of_id(&self, id: u32) -> &[Region] {
        self.regions.get(id as usize).map_or(&[], Vec::as_slice)
    }
}

impl Balancer {
    /// Registers the memory of all IDs of a source that exist at the time of the call. It contains
    /// the shards of all structures of that source. For IDs that are created later, drop the result
    /// and register again.
    ///
    /// # Errors
    ///
    /// Returns the error of [`register`](Balancer::register) for the first region that cannot be
    /// registered.
    ///
    /// ```
    /// use percid::{Counter, Source};
    ///
    /// let counter = Counter::with_source(Source::Atomic).expect("every system has atomics");
    /// counter.add(1);
    /// let balancer = percid_numa::Balancer::new();
    /// let ids = balancer.register_ids(Source::Atomic)?;
    /// assert!(!balancer.report().regions.is_empty());
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn register_ids(&self, source: Source) -> Result<IdRegions, RegisterError> {
        let regions = (0..source.id_count()).map(|id| self.register_all(memory_of(id)));
        Ok(IdRegions { source, regions: regions.collect::<Result<_, _>>()? })
    }

    /// Registers the slabs that a pool has at the time of the call: one region for all that are
    /// adjacent. A thread that uses an object reports it by its address: `region.touch(address -
    /// region.range().start)`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`register_ids`](Balancer::register_ids).
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use percid::pool::RawPool;
    ///
    /// let pool = RawPool::new(Layout::new::<[u64; 512]>(), 64);
    /// let object = pool.get().expect("memory").addr().get();
    /// let regions = percid_numa::Balancer::new().register_pool(&pool)?;
    /// let mut slabs = regions.iter().filter(|region| region.range().contains(&object));
    /// let region = slabs.next().expect("the slab of the object");
    /// region.touch(object - region.range().start);
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
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
