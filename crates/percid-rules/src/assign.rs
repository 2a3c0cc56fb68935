//! The order in which a table obtains an ID for a CPU without one: the number of IDs is adjusted,
//! the space chooses, and before a steal the expired IDs are evicted.
//!
//! The library's table runs it with fences, the simulator's with modelled costs.

use crate::space::{Assignment, Eviction, Limits, Request, Space};

/// A table from CPUs to IDs, and the operations on it that [`obtain`] needs.
pub trait Table {
    /// Returns the table's ID space.
    fn space(&mut self) -> Space<'_>;

    /// Calls [`Space::select`] with the distances of this machine.
    fn select(&mut self, request: Request, limits: Limits) -> Assignment;

    /// Takes the ID of `from` for another CPU: makes its entry unset, fences it, then calls
    /// [`Space::detach`] so that `from` forgets the ID. The ID is in transit afterwards. Returns
    /// `None` if the fence was refused; then `from` keeps the ID.
    fn steal(&mut self, from: u32) -> Option<u32>;

    /// Frees the IDs of all CPUs for which [`Space::is_evicted`] returns `true`, with one fence.
    /// Returns the number of IDs: 0 if the fence was refused.
    fn evict(&mut self, eviction: Eviction, now_ms: u64) -> u32;
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
/// The cost is that of [`Space::adjust_id_count`] and of at most two calls of [`Space::select`], an
/// eviction for each of the two and one steal: at most three fences.
///
/// ```
/// use percid_rules::assign::{self, Table};
/// use percid_rules::space::*;
///
/// /// A table without CPUs, so nothing is fenced.
/// #[derive(Default)]
/// struct Modelled {
///     counts: SpaceCounters,
///     cpus: [CpuState; 2],
///     ids: [IdState; 2],
/// }
///
/// impl Table for Modelled {
///     fn space(&mut self) -> Space<'_> {
///         Space::new(&mut self.counts, &mut self.cpus, &mut self.ids)
///     }
///     fn select(&mut self, request: Request, limits: Limits) -> Assignment {
///         self.space().select(request, limits, |_, _| Distance::Far)
///     }
///     fn steal(&mut self, from: u32) -> Option<u32> {
///         self.space().detach(from, true)
///     }
///     fn evict(&mut self, eviction: Eviction, now_ms: u64) -> u32 {
///         let evicted = [0, 1].map(|cpu| {
///             let mut space = self.space();
///             let id = space.is_evicted(cpu, eviction, now_ms).then(|| space.detach(cpu, false))?;
///             id.map(|id| space.free(id))
///         });
///         evicted.iter().flatten().count() as u32
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
        table.evict(eviction, now_ms);
    }
    let mut grant = table.select(request, limits);
    let mut expired = None;
    if let Assignment::Steal { from, .. } = grant {
        if Some(from) != request.previous_cpu && table.space().scan_due(now_ms) {
            table.space().scanned(now_ms);
            expired = Some(table.evict(Eviction::Expired, now_ms));
            grant = table.select(request, limits);
        }
    }
    let id = match grant {
        Assignment::Free(id) => Some(id),
        Assignment::Steal { from, .. } => table.steal(from),
        Assignment::Unavailable => None,
    };
    Obtained { id, expired }
}
