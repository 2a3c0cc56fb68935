//! percid's own memory as regions: the shards of every ID, and the objects of a pool.

use std::ffi::{c_int, c_void};

use super::balancer::Balancer;
use super::error;
use crate::barrier::guard;
use crate::list;
use crate::pool::Pool;
use crate::registry::{Object, Registry};
use crate::source::source;
use crate::table_stats::Range;

/// The memory of all IDs of a source, which contains their parts of all structures, as regions of a
/// balancer, from percid_id_regions_register() to percid_id_regions_unregister().
///
/// Such memory is on the node where it was first used. An ID stays with its CPU, but not forever: a
/// thread that moves to another node and takes over an ID there uses counters on a remote node.
///
/// Threads: any number of threads may use it at once.
/// Signals: percid_id_regions_touch() is async-signal-safe; the rest is not.
/// Fork: in the child no page is armed any more.
#[derive(Debug)]
pub struct IdRegions(percid_numa::IdRegions);

/// The memory of a pool's objects as regions of a balancer, from percid_pool_regions_register() to
/// percid_pool_regions_unregister().
///
/// Threads: any number of threads may use it at once.
/// Signals: percid_pool_regions_touch() is async-signal-safe; the rest is not.
/// Fork: in the child no page is armed any more.
#[derive(Debug)]
pub struct PoolRegions(Vec<percid_numa::Region>);

static ID_REGIONS: Registry<IdRegions> = Registry::new();
static POOL_REGIONS: Registry<PoolRegions> = Registry::new();

impl Object for IdRegions {
    type Inner = IdRegions;
    const TYPE: u64 = 41;
}

impl Object for PoolRegions {
    type Inner = PoolRegions;
    const TYPE: u64 = 42;
}

impl PoolRegions {
    /// Touches the region of an address. The regions are sorted by address.
    fn touch(&self, address: usize) {
        let next = self.0.partition_point(|region| region.range().end <= address);
        if let Some(region) = self.0.get(next).filter(|region| region.range().start <= address) {
            region.touch(address - region.range().start);
        }
    }
}

/// Registers the memory of all existing IDs of a source (one of enum percid_source), and stores the
/// regions in `regions`. For IDs that come later unregister and register again.
///
/// Returns 0; -EINVAL also for a number that is not a source's; and the errors of
/// percid_region_register(), for the first region that cannot be registered. On error `regions`
/// becomes NULL.
///
/// # Safety
///
/// `regions` is [memory](crate#safety) for a handle, `balancer` [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_id_regions_register(
    regions: *mut *mut IdRegions,
    balancer: *mut Balancer,
    source: c_int,
) -> c_int {
    let make = || {
        // SAFETY: the caller guarantees a handle.
        let balancer = unsafe { Registry::object(balancer) }?;
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        balancer.balancer.register_ids(source).map(IdRegions).map_err(error::of_register)
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { ID_REGIONS.create(regions, make) }
}

/// Reports that the calling thread uses the memory of its current ID, as its counters, stacks and
/// other structures of the source do. Call it regularly: once per period is enough. Unregistered
/// regions are ignored.
///
/// Async-signal-safe; never waits. Costs about 40 ns, and two system calls for every armed page of
/// the ID.
///
/// # Safety
///
/// `regions` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_id_regions_touch(regions: *mut IdRegions) {
    // SAFETY: the caller guarantees a handle.
    if let Ok(regions) = unsafe { Registry::object(regions) } {
        guard((), || regions.0.touch());
    }
}

/// Stores the first `capacity` address ranges of an ID's regions in `ranges`, and returns the
/// number of all: 0 if the ID did not exist when they were registered, or there are no such
/// regions.
///
/// # Safety
///
/// `regions` is [a handle](crate#safety), `ranges` [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_id_regions_of_id(
    regions: *const IdRegions,
    id: u32,
    ranges: *mut Range,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees a handle.
    let Ok(regions) = (unsafe { Registry::object(regions) }) else { return 0 };
    let found = regions.0.of_id(id).iter().map(|region| Range::from_range(region.range()));
    // SAFETY: the caller guarantees memory of this size, or NULL.
    guard(0, || unsafe { list::write(found, ranges, capacity) })
}

/// Unregisters the regions. No other thread may use them during the call.
///
/// Returns 0, -EINVAL for NULL, -EBADF if they were unregistered before, or -ENOMEM, and they stay
/// registered. The handle is still detected.
///
/// # Safety
///
/// `regions` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_id_regions_unregister(regions: *mut IdRegions) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { ID_REGIONS.destroy_with_memory(regions) }
}

/// Registers the memory of the existing objects of a pool, and stores the regions in `regions`: one
/// for all adjacent slabs. For objects that come later unregister and register again. The pool may
/// be destroyed before.
///
/// Returns 0, or the error of percid_region_register() for the first region that cannot be
/// registered; -EINVAL and -EBADF for the pool as for the balancer. On error `regions` becomes
/// NULL.
///
/// # Safety
///
/// `regions` is [memory](crate#safety) for a handle, `balancer` and `pool` [handles](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_regions_register(
    regions: *mut *mut PoolRegions,
    balancer: *mut Balancer,
    pool: *const Pool,
) -> c_int {
    let make = || {
        // SAFETY: the caller guarantees handles.
        let (balancer, pool) = unsafe { (Registry::object(balancer)?, Registry::object(pool)?) };
        balancer.balancer.register_pool(pool).map(PoolRegions).map_err(error::of_register)
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { POOL_REGIONS.create(regions, make) }
}

/// Reports that the calling thread uses an object, by an address in it; for a large object, call it
/// once for every page. Addresses outside the regions are ignored, and so are unregistered regions.
///
/// Async-signal-safe; never waits. Costs a search among the regions, and the cost of
/// percid_region_touch().
///
/// # Safety
///
/// `regions` is [a handle](crate#safety). Nothing is asked of the address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_regions_touch(
    regions: *mut PoolRegions,
    object: *const c_void,
) {
    // SAFETY: the caller guarantees a handle.
    if let Ok(regions) = unsafe { Registry::object(regions) } {
        guard((), || regions.touch(object.addr()));
    }
}

/// Stores the first `capacity` address ranges of the regions in `ranges`, ascending, and returns
/// the number of all; 0 if there are no such regions.
///
/// # Safety
///
/// `regions` is [a handle](crate#safety), `ranges` [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_regions_ranges(
    regions: *const PoolRegions,
    ranges: *mut Range,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees a handle.
    let Ok(regions) = (unsafe { Registry::object(regions) }) else { return 0 };
    let found = regions.0.iter().map(|region| Range::from_range(region.range()));
    // SAFETY: the caller guarantees memory of this size, or NULL.
    guard(0, || unsafe { list::write(found, ranges, capacity) })
}

/// Unregisters the regions. No other thread may use them during the call.
///
/// Returns 0, -EINVAL for NULL, -EBADF if they were unregistered before, or -ENOMEM, and they stay
/// registered. The handle is still detected.
///
/// # Safety
///
/// `regions` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_pool_regions_unregister(regions: *mut PoolRegions) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { POOL_REGIONS.destroy_with_memory(regions) }
}
