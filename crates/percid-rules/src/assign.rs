//! The order in which a table assigns IDs to CPUs and takes them away: which entries are unset,
//! when the CPUs are fenced, and when the ID is used for anything else.
//!
//! The library's table runs it with fences, the simulator's with modelled costs.

use crate::space::{Assignment, Distance, Eviction, Limits, Request, Space};

/// A table from CPUs to IDs. Critical sections read its entries; [`obtain`], [`steal`] and
/// [`evict`] change them by these effects.
pub trait Table {
    /// Returns the table's ID space, and the distance of the second CPU's memory from the first.
    fn parts(&mut self) -> (Space<'_>, impl Fn(u32, u32) -> Distance);

    /// Makes the entry of `cpu` unset. A section that is in flight may still use the ID.
    fn unset(&mut self, cpu: u32);

    /// Stores `id` in the entry of `cpu` again, because a fence was refused.
    fn restore(&mut self, cpu: u32, id: u32);

    /// Fences `cpu`, whose ID is stolen: afterwards no section in flight uses it. Returns `false`
    /// if that is refused.
    fn fence(&mut self, cpu: u32) -> bool;

    /// Fences all CPUs, `evicted` of which lose their IDs. Returns `false` if that is refused.
    fn fence_all(&mut self, evicted: u32) -> bool;

    /// Returns the table's ID space.
    fn space(&mut self) -> Space<'_> {
        self.parts().0
    }
}

/// The result of [`obtain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obtained {
    /// The ID, which is free or in transit: [`Space::assign`] it. `None` if there is none.
    pub id: Option<u32>,
    /// The number of IDs that the scan before a steal evicted; `None` without a scan.
    pub expired: Option<u32>,
}

/// Obtains an ID for a CPU that holds none.
///
/// A thread that left its ID on the CPU that it came from takes it along: no other CPU is
/// disturbed. Before any other steal, at most once per
/// [`EXPIRY_MS`](crate::space::EXPIRY_MS), every ID that has not been renewed is evicted. CPUs that
/// still use theirs take them again, and the others are known to be idle from then on (R7).
///
/// The cost is that of [`Space::adjust_id_count`] and of at most two calls of [`Space::select`], two
/// evictions and one steal: at most three fences.
///
/// ```
/// use percid_rules::assign::{self, Table};
/// use percid_rules::space::*;
///
/// /// A table without CPUs, so there is nothing to unset or to fence.
/// #[derive(Default)]
/// struct Modelled {
///     counts: SpaceCounters,
///     cpus: [CpuState; 2],
///     ids: [IdState; 2],
/// }
///
/// impl Table for Modelled {
///     fn parts(&mut self) -> (Space<'_>, impl Fn(u32, u32) -> Distance) {
///         (Space::new(&mut self.counts, &mut self.cpus, &mut self.ids), |_, _| Distance::Far)
///     }
///     fn unset(&mut self, _cpu: u32) {}
///     fn restore(&mut self, _cpu: u32, _id: u32) {}
///     fn fence(&mut self, _cpu: u32) -> bool {
///         true
///     }
///     fn fence_all(&mut self, _evicted: u32) -> bool {
///         true
///     }
/// }
///
/// // One thread runs on CPU 0, then on CPU 1: it takes its only ID along.
/// let mut table = Modelled::default();
/// let limits = Limits { allowed: 2, threads: 1, most: 0 };
/// let first = Request { cpu: 0, thread: 7, previous_cpu: None };
/// assert_eq!(assign::obtain(&mut table, first, limits, 0).id, Some(0));
/// table.space().assign(0, 0, 7, 0);
/// let next = Request { cpu: 1, thread: 7, previous_cpu: Some(0) };
/// let obtained = assign::obtain(&mut table, next, limits, 500);
/// assert_eq!((obtained.id, obtained.expired), (Some(0), None));
/// assert_eq!(table.space().held(0), None);
/// ```
pub fn obtain(table: &mut impl Table, request: Request, limits: Limits, now_ms: u64) -> Obtained {
    let eviction = table.space().adjust_id_count(limits, now_ms);
    if eviction != Eviction::None {
        evict(table, |space, cpu| space.is_evicted(cpu, eviction, now_ms));
    }
    let mut assignment = select(table, request, limits);
    let mut expired = None;
    if let Assignment::Steal { from, .. } = assignment {
        if Some(from) != request.previous_cpu && table.space().scan_due(now_ms) {
            table.space().scanned(now_ms);
            let is_expired =
                |space: &Space<'_>, cpu| space.is_evicted(cpu, Eviction::Expired, now_ms);
            expired = Some(evict(table, is_expired));
            assignment = select(table, request, limits);
        }
    }
    let id = match assignment {
        Assignment::Free(id) => Some(id),
        Assignment::Steal { from, .. } => steal(table, from),
        Assignment::Unavailable => None,
    };
    Obtained { id, expired }
}

fn select(table: &mut impl Table, request: Request, limits: Limits) -> Assignment {
    let (mut space, distance) = table.parts();
    space.select(request, limits, distance)
}

/// Takes the ID of `from` for another CPU: the ID is in transit afterwards, and `from` forgets it.
/// Returns `None` if `from` holds none, or keeps it because the fence was refused.
pub fn steal(table: &mut impl Table, from: u32) -> Option<u32> {
    let id = table.space().held(from)?;
    table.unset(from);
    if !table.fence(from) {
        // No other CPU can have been given the ID meanwhile, so it may come back.
        table.restore(from, id);
        return None;
    }
    table.space().detach(from, true)
}

/// Frees the IDs of all CPUs for which `condemned` returns `true`, with one fence for all of them.
/// Each CPU remembers its ID as recent. Returns the number of IDs: 0 if the fence was refused.
pub fn evict(table: &mut impl Table, condemned: impl Fn(&Space<'_>, u32) -> bool) -> u32 {
    let condemned = |space: Space<'_>, cpu| space.held(cpu).filter(|_| condemned(&space, cpu));
    let cpus = table.space().cpus();
    let mut count = 0;
    for cpu in 0..cpus {
        if condemned(table.space(), cpu).is_some() {
            table.unset(cpu);
            count += 1;
        }
    }
    if count == 0 {
        return 0;
    }
    let fenced = table.fence_all(count);
    for cpu in 0..cpus {
        // The space has not changed, except for CPUs that are done: the same ones are chosen.
        let Some(id) = condemned(table.space(), cpu) else { continue };
        if fenced {
            table.space().detach(cpu, false);
            table.space().free(id);
        } else {
            table.restore(cpu, id);
        }
    }
    if fenced { count } else { 0 }
}
