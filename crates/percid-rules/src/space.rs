//! The ID space: the assignment of IDs to CPUs, as a pure state machine.
//!
//! It makes no system call, reads no clock and uses no atomics. The caller serialises the calls,
//! passes the time, the limits and the distances between CPUs, and carries out the decisions. The
//! table source drives it with real CPUs and fences, a simulator with modelled ones.
//!
//! # Rules (R1 to R9 of the cache-local design of Linux commit 7e019dcc470f and its follow-up
//! 02d954c0fdf9, in user space)
//!
//! A CPU without an ID gets, in this order:
//!
//! 1. its **recent** ID, if that is free and below the number of IDs ever assigned (R1, R9);
//! 2. a **new** ID, while fewer than `bound = min(allowed CPUs, threads)` were ever assigned (R3,
//!    R4): spreading inside the bound is what keeps each CPU on its own memory;
//! 3. a **free** ID (R5); among several the one that the requesting thread left behind on its last
//!    CPU, then one last used on the same core, the same cache, the same node: percid's own
//!    addition;
//! 4. an **extra** ID, beyond the bound, while steals are frequent: percid's own addition, see
//!    below;
//! 5. an ID **stolen** from another CPU: the one this thread came from if it holds the ID that the
//!    thread took there (R6), otherwise the one whose ID was taken longest ago.
//!
//! A scan may evict an ID that is not renewed for [`EXPIRY_MS`], while its CPU remembers it as
//! recent (R7). When the bound shrinks, the number of IDs is lowered (R9), and CPUs whose IDs lie
//! above must give them up (R8). [`Space::adjust_id_count`] decides both before an ID is assigned.
//!
//! # Extra IDs: memory against time
//!
//! Assume that threads migrate over more CPUs than there are threads. They need an ID on a CPU each
//! time they return to it. If IDs stay within the bound, each return is a steal, and the CPU that
//! lost its ID steals one back a moment later. So once [`FREQUENT_STEALS`] times the bound were
//! stolen within [`EXPIRY_MS`], a CPU gets an ID beyond the bound. The limit is the number of CPUs
//! that the process may use, or the program's [limit](Limits::most). While there are extra IDs,
//! every CPU loses its ID at the first request for one after [`EXPIRY_MS`], and remembers it as
//! recent. The *demand* is the number of CPUs that took an ID again by the next such time, which
//! are the CPUs visited within that time. IDs that no CPU took again are free, and those above the
//! demand cease to exist. When the demand fits the bound again, so do the IDs. Hence an ID is only
//! added when as many CPUs as there are IDs were visited within [`EXPIRY_MS`]. All of this happens
//! when some CPU requests an ID: if every CPU that runs the process holds one, no CPU requests any,
//! and the state does not change.
//!
//! # Invariant
//!
//! Every ID is in exactly one of three states: free, held by one CPU, or in transit (taken from a
//! CPU by [`Space::detach`] and neither given nor freed yet). Hence no two CPUs ever hold the same
//! ID. With debug assertions, each method that changes a state asserts the state it starts from.
//! Other builds do not: they must not end a user's process because of a bug in percid.
//!
//! # Example
//!
//! ```
//! use percid_rules::space::{
//!     Assignment, CpuState, Distance, IdState, Limits, Request, Space, SpaceCounters,
//! };
//!
//! // A machine with four CPUs; two threads run on it.
//! let (mut counts, mut cpus, mut ids) =
//!     (SpaceCounters::default(), [CpuState::default(); 4], [IdState::default(); 4]);
//! let mut space = Space::new(&mut counts, &mut cpus, &mut ids);
//! let limits = Limits { allowed: 4, threads: 2, most: 0 };
//! for (cpu, thread) in [(3, 7), (1, 8)] {
//!     let request = Request { cpu, thread, previous_cpu: None };
//!     let Assignment::Free(id) = space.select(request, limits, |_, _| Distance::Far) else {
//!         panic!("there is a free ID for each thread");
//!     };
//!     space.assign(cpu, id, thread, 0);
//! }
//! assert_eq!((space.held(3), space.held(1)), (Some(0), Some(1)));
//! ```

/// Time for which an ID may stay on a CPU without being renewed before a scan may evict it (R7).
pub const EXPIRY_MS: u64 = 100;

/// Number of steals within [`EXPIRY_MS`] that are frequent, per ID within the bound. Fewer steals
/// cost less than the memory of another ID: at 1 to 10 us each, including the fence, ten in 100 ms
/// take at most a thousandth of a thread's time.
pub const FREQUENT_STEALS: u32 = 10;

/// The current limits of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The weight of the union of all affinities seen so far (R2).
    pub allowed: u32,
    /// Number of threads in the process.
    pub threads: u32,
    /// Maximum number of IDs while steals are frequent, limited to the allowed CPUs; 0 for no more
    /// than the bound.
    pub most: u32,
}

impl Limits {
    /// Returns `min(allowed, threads)`, at least 1: the caller itself is a thread on an allowed
    /// CPU.
    pub fn bound(self) -> u32 {
        self.allowed.min(self.threads).max(1)
    }

    /// Returns the bound while steals are frequent.
    fn extended(self) -> u32 {
        self.allowed.min(self.most).max(self.bound())
    }
}

/// The distance of the memory last used by one CPU from another. The order is the order of
/// preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// Two hardware threads of one core.
    SameCore,
    /// Two cores behind one last-level cache.
    SameL3,
    /// Two caches on one NUMA node.
    SameNode,
    /// Two nodes, or unknown.
    Far,
}

/// The state of a CPU in the space. All zero is the state of a CPU that was never seen.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct CpuState {
    /// One more than the ID it holds; 0 for none.
    held: u32,
    /// One more than the ID it held last; 0 for none.
    recent: u32,
    /// The thread that took the ID.
    assigned_thread: u64,
    /// The time at which the ID was taken, in the caller's milliseconds.
    since_ms: u64,
}

/// The state of an ID in the space. All zero is an ID that was never assigned.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct IdState {
    /// One more than the CPU that holds it; 0 if it is free, [`IN_TRANSIT`] if it is in transit.
    holder: u32,
    /// One more than the CPU that held it last; 0 if none did.
    last: u32,
}

const IN_TRANSIT: u32 = u32::MAX;

/// The counts of the space. All zero is an empty space.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct SpaceCounters {
    /// The number of IDs assigned so far (a number, not the largest ID), lowered when the bound
    /// shrinks.
    max_nr_cid: u32,
    /// No ID at or above this number is held.
    ceiling: u32,
    /// The time of the last scan for expired IDs.
    scanned_ms: u64,
    /// The start of the time window in which steals are counted.
    window_ms: u64,
    /// Steals in this window.
    steals: u32,
    /// Nonzero while there may be IDs beyond the bound because steals were frequent.
    extra: u32,
    /// Nonzero if there was no memory for another ID in this window.
    no_memory: u32,
    /// Padding that keeps the layout free of undefined bytes.
    reserved: u32,
}

/// A request for an ID.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The CPU without an ID.
    pub cpu: u32,
    /// The thread that requests it: any number that is unique among the living threads.
    pub thread: u64,
    /// The CPU on which this thread took an ID before.
    pub previous_cpu: Option<u32>,
}

/// The origin of an ID. The caller carries it out as described at each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// No CPU holds this ID: [`Space::assign`] it.
    Free(u32),
    /// Take it from a CPU first: make its entry unset, fence it, [`Space::detach`], then give.
    Steal {
        /// The CPU that holds it.
        from: u32,
        /// The ID.
        id: u32,
    },
    /// No ID is available: more CPUs request one than there are IDs, and all are in transit.
    Unavailable,
}

/// The CPUs that must give up their IDs before one is assigned: make their entries unset, fence
/// them, then [`detach`](Space::detach) and [`free`](Space::free) each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// No CPU.
    None,
    /// CPUs whose IDs lie above the number of IDs (R8).
    AboveBound,
    /// These CPUs, and those that have not renewed their IDs for [`EXPIRY_MS`] (R7).
    Expired,
    /// All CPUs: those in use take their IDs again.
    All,
}

/// The ID space over memory that the caller provides, all zero at first; one [`CpuState`] and one
/// [`IdState`] per possible CPU.
///
/// CPUs and IDs are numbers below the length of their slices; the methods panic at others.
#[derive(Debug)]
pub struct Space<'a> {
    counts: &'a mut SpaceCounters,
    cpus: &'a mut [CpuState],
    ids: &'a mut [IdState],
}

impl<'a> Space<'a> {
    /// Creates an ID space over the caller's memory.
    ///
    /// # Panics
    ///
    /// If there are fewer IDs than CPUs.
    pub fn new(
        counts: &'a mut SpaceCounters,
        cpus: &'a mut [CpuState],
        ids: &'a mut [IdState],
    ) -> Space<'a> {
        assert!(ids.len() >= cpus.len(), "an ID for every CPU");
        Space { counts, cpus, ids }
    }

    /// Returns the number of possible CPUs.
    pub fn cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// Returns the ID that `cpu` holds.
    pub fn held(&self, cpu: u32) -> Option<u32> {
        self.cpus[cpu as usize].held.checked_sub(1)
    }

    /// Returns the number of IDs assigned so far and not given up when the bound shrank.
    pub fn max_nr_cid(&self) -> u32 {
        self.counts.max_nr_cid
    }

    /// Adjusts the number of IDs before one is chosen: lowers it to the bound (R9), or to the
    /// demand while there are extra IDs. The cost is a few comparisons; with extra IDs it is linear
    /// in the number of CPUs once per [`EXPIRY_MS`].
    pub fn adjust_id_count(&mut self, limits: Limits, now_ms: u64) -> Eviction {
        let window_over = now_ms.saturating_sub(self.counts.window_ms) >= EXPIRY_MS;
        if window_over {
            self.counts.window_ms = now_ms;
            self.counts.steals = 0;
            self.counts.no_memory = 0;
        }
        let kept = self.counts.extra != 0 && self.counts.max_nr_cid <= limits.extended();
        match (kept, window_over) {
            (false, _) => self.within_bound(limits),
            (true, false) => Eviction::None,
            (true, true) => self.follow_demand(limits, now_ms),
        }
    }

    /// Makes the space dense on request.
    pub fn compact(&mut self, limits: Limits) -> Eviction {
        self.within_bound(limits);
        Eviction::Expired
    }

    fn within_bound(&mut self, limits: Limits) -> Eviction {
        self.counts.extra = 0;
        if self.shrink(limits) { Eviction::AboveBound } else { Eviction::None }
    }

    /// Lowers the number of IDs to the demand, once per [`EXPIRY_MS`] while there are extra IDs.
    /// All CPUs lost their IDs the last time, so those that hold one were visited since. If no CPU
    /// requested an ID during that time, their IDs have expired and do not count.
    fn follow_demand(&mut self, limits: Limits, now_ms: u64) -> Eviction {
        self.scanned(now_ms);
        let visited =
            |cpu: &CpuState| cpu.held != 0 && now_ms.saturating_sub(cpu.since_ms) <= EXPIRY_MS;
        let demand = self.cpus.iter().filter(|cpu| visited(cpu)).count() as u32;
        if demand <= limits.bound() {
            self.within_bound(limits);
            return Eviction::Expired;
        }
        self.counts.max_nr_cid = self.counts.max_nr_cid.min(demand);
        Eviction::All
    }

    /// Returns `true` if `cpu` must give up its ID.
    pub fn is_evicted(&self, cpu: u32, eviction: Eviction, now_ms: u64) -> bool {
        match eviction {
            Eviction::None => false,
            Eviction::AboveBound => self.is_above_bound(cpu),
            Eviction::Expired => self.is_above_bound(cpu) || self.is_expired(cpu, now_ms),
            Eviction::All => self.held(cpu).is_some(),
        }
    }

    /// Lowers the number of IDs to the bound. Returns `true` if IDs above it are still held: they
    /// stay valid until they are taken from their CPUs.
    fn shrink(&mut self, limits: Limits) -> bool {
        let counts = &mut *self.counts;
        counts.max_nr_cid = counts.max_nr_cid.min(limits.bound());
        let above = &self.ids[counts.max_nr_cid as usize..counts.ceiling as usize];
        let highest =
            above.iter().rposition(|id| id.holder != 0).map_or(0, |index| index as u32 + 1);
        counts.ceiling = counts.max_nr_cid + highest;
        highest > 0
    }

    fn is_above_bound(&self, cpu: u32) -> bool {
        self.held(cpu).is_some_and(|id| id >= self.counts.max_nr_cid)
    }

    fn is_expired(&self, cpu: u32, now_ms: u64) -> bool {
        self.held(cpu).is_some() && now_ms.saturating_sub(self.since(cpu)) >= EXPIRY_MS
    }

    /// Returns `true` if a scan for expired IDs is due, which is once per [`EXPIRY_MS`].
    pub fn scan_due(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.counts.scanned_ms) >= EXPIRY_MS
    }

    /// Records that a scan ran.
    pub fn scanned(&mut self, now_ms: u64) {
        self.counts.scanned_ms = now_ms;
    }

    /// Decides the origin of the ID for a CPU without one. The cost is linear in the number of IDs,
    /// and for a steal also in the number of CPUs.
    ///
    /// `distance(a, b)` returns the distance of CPU `b`'s memory from CPU `a`.
    pub fn select(
        &mut self,
        request: Request,
        limits: Limits,
        distance: impl Fn(u32, u32) -> Distance,
    ) -> Assignment {
        debug_assert_eq!(self.held(request.cpu), None, "this CPU has an ID");
        let granted = self
            .free_recent(request.cpu)
            .or_else(|| self.new_id(limits))
            .or_else(|| self.nearest_free(request, distance))
            .or_else(|| self.extra_id(limits));
        match granted {
            Some(id) => Assignment::Free(id),
            None => self.steal(request),
        }
    }

    /// Takes the ID from `cpu`, if it holds one: the ID is in transit until it is given or freed. A
    /// steal also makes the CPU `forget` it; a scan leaves it as the CPU's recent ID.
    pub fn detach(&mut self, cpu: u32, forget: bool) -> Option<u32> {
        let id = self.held(cpu)?;
        let state = &mut self.cpus[cpu as usize];
        state.held = 0;
        if forget {
            state.recent = 0;
            self.counts.steals = self.counts.steals.saturating_add(1);
        }
        let ours = &mut self.ids[id as usize];
        debug_assert_eq!(ours.holder, cpu + 1, "ID and CPU agree");
        ours.holder = IN_TRANSIT;
        Some(id)
    }

    /// Assigns `id`, which is free or in transit, to `cpu`, which holds none.
    pub fn assign(&mut self, cpu: u32, id: u32, thread: u64, now_ms: u64) {
        let ours = &mut self.ids[id as usize];
        debug_assert!(ours.holder == 0 || ours.holder == IN_TRANSIT, "no CPU holds the ID");
        *ours = IdState { holder: cpu + 1, last: cpu + 1 };
        let state = &mut self.cpus[cpu as usize];
        debug_assert_eq!(state.held, 0, "the CPU holds no ID");
        *state =
            CpuState { held: id + 1, recent: id + 1, assigned_thread: thread, since_ms: now_ms };
        self.counts.max_nr_cid = self.counts.max_nr_cid.max(id + 1);
        self.counts.ceiling = self.counts.ceiling.max(id + 1);
    }

    /// Revokes the ID that was just given to `cpu`, because there is no memory for it: the ID is
    /// free. If it was the highest, it ceases to exist. There are no extra IDs for the rest of
    /// [`EXPIRY_MS`].
    pub fn revoke(&mut self, cpu: u32) {
        let Some(id) = self.held(cpu) else { return };
        self.cpus[cpu as usize] = CpuState::default();
        self.ids[id as usize] = IdState::default();
        self.counts.no_memory = 1;
        if id + 1 == self.counts.max_nr_cid {
            self.counts.max_nr_cid = id;
        }
    }

    /// Frees an ID that is in transit.
    pub fn free(&mut self, id: u32) {
        let ours = &mut self.ids[id as usize];
        // Otherwise the ID would be freed twice, or while a CPU uses it.
        debug_assert_eq!(ours.holder, IN_TRANSIT, "the ID is in transit");
        ours.holder = 0;
    }

    /// Removes a free ID from circulation: it is in transit until it is given or freed.
    pub fn reserve(&mut self, id: u32) {
        debug_assert!(self.is_free(id));
        self.ids[id as usize].holder = IN_TRANSIT;
    }

    /// Returns the number of IDs that are held or in transit.
    pub fn in_use(&self) -> usize {
        self.ids.iter().filter(|id| id.holder != 0).count()
    }

    fn holders(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.cpus()).filter(|&cpu| self.cpus[cpu as usize].held != 0)
    }

    fn since(&self, cpu: u32) -> u64 {
        self.cpus[cpu as usize].since_ms
    }

    fn is_free(&self, id: u32) -> bool {
        self.ids[id as usize].holder == 0
    }

    fn free_recent(&self, cpu: u32) -> Option<u32> {
        let recent = self.cpus[cpu as usize].recent.checked_sub(1)?;
        (recent < self.counts.max_nr_cid && self.is_free(recent)).then_some(recent)
    }

    /// Returns the next ID, unless it is still held since a time when the bound was larger.
    fn new_id(&self, limits: Limits) -> Option<u32> {
        self.new_id_below(limits.bound())
    }

    /// Returns a new ID beyond the bound, if steals are or have been frequent.
    fn extra_id(&mut self, limits: Limits) -> Option<u32> {
        let frequent = FREQUENT_STEALS.saturating_mul(limits.bound());
        let rare = self.counts.extra == 0 && self.counts.steals < frequent;
        if rare || self.counts.no_memory != 0 {
            return None;
        }
        let id = self.new_id_below(limits.extended())?;
        self.counts.extra = 1;
        Some(id)
    }

    fn new_id_below(&self, bound: u32) -> Option<u32> {
        (self.counts.max_nr_cid..bound.min(self.ids.len() as u32)).find(|&id| self.is_free(id))
    }

    fn nearest_free(
        &self,
        request: Request,
        distance: impl Fn(u32, u32) -> Distance,
    ) -> Option<u32> {
        let rank = |id: u32| match self.ids[id as usize].last.checked_sub(1) {
            last if last.is_some() && last == request.previous_cpu => None,
            Some(last) => Some(distance(request.cpu, last)),
            None => Some(Distance::Far),
        };
        (0..self.counts.max_nr_cid).filter(|&id| self.is_free(id)).min_by_key(|&id| rank(id))
    }

    fn steal(&self, request: Request) -> Assignment {
        let left_behind = request.previous_cpu.filter(|&cpu| {
            self.held(cpu).is_some() && self.cpus[cpu as usize].assigned_thread == request.thread
        });
        let oldest = || self.holders().min_by_key(|&cpu| self.since(cpu));
        match left_behind.or_else(oldest) {
            Some(from) => {
                self.held(from).map_or(Assignment::Unavailable, |id| Assignment::Steal { from, id })
            }
            None => Assignment::Unavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Eight CPUs: two per core, four per cache, all on one node.
    fn distance(a: u32, b: u32) -> Distance {
        match () {
            () if a / 2 == b / 2 => Distance::SameCore,
            () if a / 4 == b / 4 => Distance::SameL3,
            () => Distance::SameNode,
        }
    }

    struct Storage {
        counts: SpaceCounters,
        cpus: [CpuState; 8],
        ids: [IdState; 8],
    }

    impl Storage {
        fn new() -> Storage {
            Storage {
                counts: SpaceCounters::default(),
                cpus: [CpuState::default(); 8],
                ids: [IdState::default(); 8],
            }
        }

        fn space(&mut self) -> Space<'_> {
            Space::new(&mut self.counts, &mut self.cpus, &mut self.ids)
        }

        /// Acts like a driver, without fences.
        fn enter(&mut self, cpu: u32, thread: u64, from: Option<u32>, limits: Limits) -> u32 {
            self.enter_at(cpu, thread, from, limits, u64::from(cpu))
        }

        fn enter_at(
            &mut self,
            cpu: u32,
            thread: u64,
            from: Option<u32>,
            limits: Limits,
            now_ms: u64,
        ) -> u32 {
            let request = Request { cpu, thread, previous_cpu: from };
            let mut space = self.space();
            let id = match space.select(request, limits, distance) {
                Assignment::Free(id) => id,
                Assignment::Steal { from, id } => {
                    assert_eq!(space.detach(from, true), Some(id));
                    id
                }
                Assignment::Unavailable => panic!("nothing to be had"),
            };
            space.assign(cpu, id, thread, now_ms);
            id
        }

        fn evicted(&mut self, eviction: Eviction, now_ms: u64) -> Vec<u32> {
            let space = self.space();
            (0..8).filter(|&cpu| space.is_evicted(cpu, eviction, now_ms)).collect()
        }

        /// A visit by the single thread of a process, which migrates.
        fn visit(&mut self, cpu: u32, from: u32, limits: Limits, now_ms: u64) -> u32 {
            let eviction = self.space().adjust_id_count(limits, now_ms);
            for cpu in self.evicted(eviction, now_ms) {
                self.leave(cpu);
            }
            if let Some(held) = self.space().held(cpu) {
                return held;
            }
            self.enter_at(cpu, 1, Some(from), limits, now_ms)
        }

        fn leave(&mut self, cpu: u32) {
            let id = self.space().detach(cpu, false).expect("the CPU holds an ID");
            self.space().free(id);
        }
    }

    const fn limits(allowed: u32, threads: u32) -> Limits {
        Limits { allowed, threads, most: 0 }
    }

    const fn relaxed(threads: u32, most: u32) -> Limits {
        Limits { allowed: 8, threads, most }
    }

    #[test]
    fn r1_a_cpu_gets_its_recent_id_back() {
        let mut s = Storage::new();
        assert_eq!(s.enter(3, 1, None, limits(8, 8)), 0);
        assert_eq!(s.enter(5, 2, None, limits(8, 8)), 1);
        s.leave(3);
        s.leave(5);
        assert_eq!(s.enter(5, 9, None, limits(8, 8)), 1);
        assert_eq!(s.enter(3, 9, None, limits(8, 8)), 0);
    }

    #[test]
    fn r4_expansion_comes_before_reuse_and_stops_at_the_bound() {
        let mut s = Storage::new();
        assert_eq!(s.enter(0, 1, None, limits(8, 3)), 0);
        s.leave(0);
        assert_eq!(s.enter(1, 1, None, limits(8, 3)), 1, "new, although 0 is free");
        assert_eq!(s.enter(2, 1, None, limits(8, 3)), 2);
        assert_eq!(s.enter(3, 1, None, limits(8, 3)), 0, "the bound is reached: the free one");
    }

    #[test]
    fn among_free_ids_the_nearest_wins() {
        let mut s = Storage::new();
        for cpu in [0, 2, 4, 6] {
            s.enter(cpu, u64::from(cpu), None, limits(8, 4));
        }
        [0, 2, 4, 6].into_iter().for_each(|cpu| s.leave(cpu));
        assert_eq!(s.enter(5, 9, None, limits(8, 4)), 2, "the other thread of core 4-5");
        s.leave(5);
        assert_eq!(s.enter(1, 9, Some(6), limits(8, 4)), 3, "its own from CPU 6 beats its core");
    }

    #[test]
    fn r6_a_migrating_thread_takes_its_id_along() {
        let mut s = Storage::new();
        for (cpu, thread) in [(0, 10), (1, 11)] {
            s.enter(cpu, thread, None, limits(8, 2));
        }
        assert_eq!(s.enter(7, 11, Some(1), limits(8, 2)), 1, "not the older one of CPU 0");
        assert_eq!(s.space().held(1), None);
        assert_eq!(s.space().held(0), Some(0));
    }

    #[test]
    fn an_id_that_is_held_back_is_not_handed_out() {
        let mut s = Storage::new();
        s.enter(0, 1, None, limits(8, 2));
        s.leave(0);
        assert_eq!(s.space().in_use(), 0);
        s.space().reserve(0);
        assert_eq!(s.space().in_use(), 1);
        assert_eq!(s.enter(0, 1, None, limits(8, 2)), 1, "not its recent one");
        s.space().free(0);
        assert_eq!(s.enter(1, 2, None, limits(8, 2)), 0);
        s.leave(0);
        s.space().reserve(1);
        assert_eq!(s.enter(0, 1, None, limits(8, 3)), 2, "nor the other free one");
    }

    #[test]
    fn without_a_trace_the_oldest_is_stolen() {
        let mut s = Storage::new();
        for (cpu, thread) in [(2, 10), (1, 11)] {
            s.enter(cpu, thread, None, limits(8, 2));
        }
        // `enter` uses the CPU number as the time, so CPU 1 took its ID first.
        assert_eq!(s.enter(7, 12, None, limits(8, 2)), 1);
        // Another thread has taken CPU 2's ID since: thread 10 has no claim on it.
        assert_eq!(s.enter(6, 11, Some(2), limits(8, 2)), 0);
    }

    #[test]
    fn r7_expiry_keeps_the_hint() {
        let mut s = Storage::new();
        s.enter(3, 1, None, limits(8, 8));
        assert!(!s.space().is_expired(3, 3 + EXPIRY_MS - 1));
        assert!(s.space().is_expired(3, 3 + EXPIRY_MS));
        assert!(!s.space().is_expired(4, 3 + EXPIRY_MS), "it holds none");
        assert!(s.space().scan_due(EXPIRY_MS));
        s.space().scanned(EXPIRY_MS);
        assert!(!s.space().scan_due(2 * EXPIRY_MS - 1));
        assert_eq!(s.space().detach(4, true), None);
    }

    #[test]
    fn following_the_demand_is_a_scan() {
        let mut s = Storage::new();
        wander(&mut s, relaxed(1, 8), 0, 400);
        assert!(!s.space().scan_due(399) && s.space().scan_due(400), "the last one was at 300 ms");
    }

    #[test]
    fn a_bound_is_1_where_nothing_is_known() {
        assert_eq!(limits(0, 0).bound(), 1);
    }

    #[test]
    fn r8_r9_a_smaller_bound_takes_back_what_lies_above() {
        let mut s = Storage::new();
        for cpu in 0..4 {
            s.enter(cpu, u64::from(cpu), None, limits(8, 4));
        }
        s.leave(3);
        assert_eq!(s.space().adjust_id_count(limits(8, 2), 4), Eviction::AboveBound);
        assert_eq!(s.space().max_nr_cid(), 2);
        assert_eq!(s.evicted(Eviction::AboveBound, 4), [2]);
        s.leave(2);
        assert_eq!(s.space().adjust_id_count(limits(8, 2), 4), Eviction::None);
        s.leave(1);
        assert_eq!(s.enter(3, 3, None, limits(8, 2)), 1, "its recent ID 3 is above the bound");
    }

    #[test]
    fn an_id_held_above_a_bound_that_grows_again_is_not_handed_out_twice() {
        let mut s = Storage::new();
        for cpu in 0..3 {
            s.enter(cpu, u64::from(cpu), None, limits(8, 3));
        }
        s.space().adjust_id_count(limits(8, 1), 4);
        assert_eq!(s.enter(5, 5, None, limits(8, 4)), 3, "1 and 2 are still held");
    }

    /// The panic comes from an assertion that only debug builds have.
    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the ID is in transit")]
    fn freeing_twice_is_caught() {
        let mut s = Storage::new();
        s.enter(0, 0, None, limits(8, 1));
        s.leave(0);
        s.space().free(0);
    }

    /// One thread that visits CPUs 0 to 3 in turn, once per millisecond.
    fn wander(s: &mut Storage, limits: Limits, from_ms: u64, until_ms: u64) -> u32 {
        let visit = |now: u64| s.visit(now as u32 % 4, (now as u32 + 3) % 4, limits, now);
        (from_ms..until_ms).map(visit).max().expect("a visit") + 1
    }

    #[test]
    fn extra_ids_come_when_steals_are_frequent() {
        let mut s = Storage::new();
        let limits = relaxed(1, 8);
        assert_eq!(wander(&mut s, limits, 0, u64::from(FREQUENT_STEALS)), 1);
        assert_eq!(wander(&mut s, limits, 10, 90), 4, "one for each CPU visited");
        assert_eq!(wander(&mut s, limits, 90, 1000), 4, "and no more");
        assert_eq!(s.space().max_nr_cid(), 4);
    }

    #[test]
    fn extra_ids_respect_the_most_the_allowed_and_strictness() {
        for (most, allowed, expected) in [(3, 8, 3), (8, 2, 2), (0, 8, 1)] {
            let mut s = Storage::new();
            let limits = Limits { allowed, threads: 1, most };
            assert_eq!(wander(&mut s, limits, 0, 1000), expected);
        }
    }

    #[test]
    fn extra_ids_end_when_it_is_quiet() {
        let mut s = Storage::new();
        let limits = relaxed(1, 8);
        wander(&mut s, limits, 0, 1000);
        // The thread stays on one CPU and uses its ID there without a request: the next request
        // ends the extra IDs.
        assert_eq!(s.visit(7, 3, limits, 1200), 0);
        assert_eq!((s.space().max_nr_cid(), s.space().in_use()), (1, 1));
    }

    #[test]
    fn extra_ids_end_under_others_slow_paths_too() {
        let mut s = Storage::new();
        let limits = relaxed(1, 8);
        wander(&mut s, limits, 0, 1000);
        // One CPU requests an ID from time to time, because its ID is evicted.
        let most = |s: &mut Storage, now| (s.visit(2, 2, limits, now), s.space().max_nr_cid()).1;
        assert_eq!(most(&mut s, 1000), 4, "the CPUs of the last 100 ms are the demand");
        assert_eq!(most(&mut s, 1100), 1);
    }

    #[test]
    fn without_memory_for_an_extra_id_steals_go_on() {
        let mut s = Storage::new();
        let limits = relaxed(1, 8);
        assert_eq!(wander(&mut s, limits, 0, 11), 1);
        assert_eq!(s.visit(5, 2, limits, 11), 1, "steals are frequent");
        s.space().revoke(5);
        assert_eq!(s.visit(5, 2, limits, 12), 0, "stolen: there is nothing else");
        assert_eq!((s.space().max_nr_cid(), s.space().in_use()), (1, 1));
        assert_eq!(s.visit(6, 5, limits, 13), 0, "and so on");
    }

    #[test]
    fn on_request_extra_ids_end_at_once() {
        let mut s = Storage::new();
        wander(&mut s, relaxed(1, 8), 0, 1000);
        assert_eq!(s.space().compact(relaxed(1, 8)), Eviction::Expired);
        assert_eq!(s.space().max_nr_cid(), 1);
        assert_eq!(s.evicted(Eviction::Expired, 1000).len(), 3);
        // A lower limit that the program has set since then has the same effect.
        wander(&mut s, relaxed(1, 8), 1000, 2000);
        assert_eq!(s.space().adjust_id_count(relaxed(1, 2), 2000), Eviction::AboveBound);
    }

    /// The rules as in this module's documentation, regardless of speed: sets of IDs, and a number
    /// for everything that can be counted.
    #[derive(Debug, Default, Clone)]
    struct Naive {
        /// Per CPU: the ID it holds, the ID it held last, the thread that took it, and the time.
        held: [Option<u32>; 8],
        recent: [Option<u32>; 8],
        assigned_thread: [u64; 8],
        since: [u64; 8],
        /// Per ID: the CPU that held it last.
        last: [Option<u32>; 8],
        number: u32,
        extra: bool,
        no_memory: bool,
        window: u64,
        steals: u32,
    }

    impl Naive {
        fn is_free(&self, id: u32) -> bool {
            !self.held.contains(&Some(id))
        }

        fn visited(&self, now: u64) -> u32 {
            let visited = |cpu: &usize| self.held[*cpu].is_some() && now - self.since[*cpu] <= 100;
            (0..8).filter(visited).count() as u32
        }

        /// Returns the CPUs that lose their IDs before another one is assigned.
        fn upkeep(&mut self, limits: Limits, now: u64) -> Vec<u32> {
            let bound = limits.allowed.min(limits.threads).max(1);
            let most = limits.allowed.min(limits.most).max(bound);
            let over = now - self.window >= 100;
            if over {
                (self.window, self.steals, self.no_memory) = (now, 0, false);
            }
            let mut expired = false;
            if self.extra && self.number <= most {
                if !over {
                    return Vec::new();
                }
                let demand = self.visited(now);
                if demand > bound {
                    self.number = self.number.min(demand);
                    return (0..8).filter(|&cpu| self.held[cpu as usize].is_some()).collect();
                }
                expired = true;
            }
            self.extra = false;
            self.number = self.number.min(bound);
            self.losers(expired, now)
        }

        fn losers(&self, expired: bool, now: u64) -> Vec<u32> {
            let loses = |cpu: usize| {
                let old = expired && now - self.since[cpu] >= 100;
                self.held[cpu].is_some_and(|id| id >= self.number || old)
            };
            (0..8).filter(|&cpu| loses(cpu as usize)).collect()
        }

        fn leave(&mut self, cpu: u32) {
            self.held[cpu as usize] = None;
        }

        /// Returns the ID, and the CPU that it came from, if any.
        fn enter(&mut self, request: Request, limits: Limits, now: u64) -> (u32, Option<u32>) {
            let bound = limits.allowed.min(limits.threads).max(1);
            let most = limits.allowed.min(limits.most).max(bound);
            let new = |naive: &Naive, below: u32| {
                (naive.number..below.min(8)).find(|&id| naive.is_free(id))
            };
            let recent = self.recent[request.cpu as usize]
                .filter(|&id| id < self.number && self.is_free(id));
            let rank = |id: &u32| match self.last[*id as usize] {
                Some(cpu) if Some(cpu) == request.previous_cpu => 0,
                Some(cpu) => 1 + distance(request.cpu, cpu) as u32,
                None => 1 + Distance::Far as u32,
            };
            let nearest = (0..self.number).filter(|&id| self.is_free(id)).min_by_key(rank);
            let frequent = self.extra || self.steals >= FREQUENT_STEALS * bound;
            let found = recent.or(new(self, bound)).or(nearest);
            let extra = new(self, most).filter(|_| found.is_none() && frequent && !self.no_memory);
            self.extra |= extra.is_some();
            let (id, from) = match found.or(extra) {
                Some(id) => (id, None),
                None => {
                    let holds = |cpu: &u32| self.held[*cpu as usize].is_some();
                    let took = |cpu: &u32| self.assigned_thread[*cpu as usize] == request.thread;
                    let oldest =
                        || (0..8).filter(holds).min_by_key(|&cpu| self.since[cpu as usize]);
                    let from = request.previous_cpu.filter(|cpu| holds(cpu) && took(cpu));
                    let from = from.or_else(oldest).expect("somebody holds one");
                    let id = self.held[from as usize].take().expect("it holds one");
                    self.recent[from as usize] = None;
                    self.steals += 1;
                    (id, Some(from))
                }
            };
            let cpu = request.cpu as usize;
            (self.held[cpu], self.recent[cpu]) = (Some(id), Some(id));
            (self.assigned_thread[cpu], self.since[cpu]) = (request.thread, now);
            self.last[id as usize] = Some(request.cpu);
            self.number = self.number.max(id + 1);
            (id, from)
        }

        fn withdraw(&mut self, cpu: u32) {
            let Some(id) = self.held[cpu as usize].take() else { return };
            self.recent[cpu as usize] = None;
            self.last[id as usize] = None;
            self.no_memory = true;
            self.number -= u32::from(id + 1 == self.number);
        }
    }

    /// Marsaglia's xorshift: returns numbers below a bound.
    fn random(seed: u64) -> impl FnMut(u64) -> u32 {
        let mut state = seed * 2 + 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below) as u32
        }
    }

    /// The times are often exactly [`EXPIRY_MS`] apart, and the limits stay for a while.
    #[test]
    fn random_walks_go_as_the_naive_rules_say() {
        for seed in 0..if cfg!(miri) { 2 } else { 1000u64 } {
            let (mut s, mut naive, mut next) = (Storage::new(), Naive::default(), random(seed));
            let (mut now, mut limits) = (0, relaxed(1, 8));
            for step in 0..400 {
                now += [0, 1, 24, 100][if next(4) > 0 { 0 } else { next(4) as usize }];
                if next(40) == 0 {
                    limits = Limits { allowed: next(11), threads: next(11), most: next(11) };
                }
                let cpu = next(8);
                let evicted = match next(60) {
                    0 => {
                        let eviction = s.space().compact(limits);
                        naive.extra = false;
                        let bound = limits.allowed.min(limits.threads).max(1);
                        naive.number = naive.number.min(bound);
                        (s.evicted(eviction, now), naive.losers(true, now))
                    }
                    _ => {
                        let eviction = s.space().adjust_id_count(limits, now);
                        (s.evicted(eviction, now), naive.upkeep(limits, now))
                    }
                };
                assert_eq!(evicted.0, evicted.1, "seed {seed}, step {step}: {naive:?}");
                for cpu in evicted.1 {
                    s.leave(cpu);
                    naive.leave(cpu);
                }
                if naive.held[cpu as usize].is_none() {
                    let previous_cpu = Some(next(9)).filter(|&from| from != cpu && from < 8);
                    let request = Request { cpu, thread: u64::from(next(3)), previous_cpu };
                    let before = naive.held;
                    let (id, from) = naive.enter(request, limits, now);
                    let got = s.enter_at(cpu, request.thread, previous_cpu, limits, now);
                    let why = std::format!("seed {seed}, step {step}, {request:?}, {before:?}");
                    assert_eq!(got, id, "{why}");
                    let lost = from.map(|from| s.space().held(from));
                    assert!(matches!(lost, None | Some(None)), "{why}: from {from:?}");
                    if next(30) == 0 {
                        s.space().revoke(cpu);
                        naive.withdraw(cpu);
                    }
                } else if next(3) == 0 {
                    s.leave(cpu);
                    naive.leave(cpu);
                }
                let held = core::array::from_fn(|cpu| s.space().held(cpu as u32));
                assert_eq!(held, naive.held, "seed {seed}, step {step}");
                assert_eq!(s.space().max_nr_cid(), naive.number, "seed {seed}, step {step}");
            }
        }
    }

    /// Random walks: the assertions of `Space` check its states, this test checks the bound and
    /// that IDs are distinct.
    #[test]
    fn random_walks_keep_ids_distinct_and_below_the_bound() {
        for seed in 0..if cfg!(miri) { 4 } else { 400u64 } {
            let mut s = Storage::new();
            let mut next = random(seed);
            let most = if seed % 2 == 0 { 0 } else { 6 };
            let mut now = 0;
            for _ in 0..500 {
                now += u64::from(next(30));
                let (cpu, limits) = (next(8), Limits { most, ..limits(8, 1 + next(8)) });
                let eviction = s.space().adjust_id_count(limits, now);
                s.evicted(eviction, now).into_iter().for_each(|cpu| s.leave(cpu));
                match s.space().held(cpu) {
                    Some(_) if next(2) == 0 => s.leave(cpu),
                    Some(_) => {}
                    None => {
                        let from = Some(next(8)).filter(|&from| from != cpu);
                        s.enter_at(cpu, u64::from(next(4)), from, limits, now);
                    }
                }
                let mut held: Vec<u32> = (0..8).filter_map(|cpu| s.space().held(cpu)).collect();
                let bound = limits.extended();
                assert!(held.iter().all(|&id| id < bound), "seed {seed}: {held:?}");
                let count = held.len();
                held.sort_unstable();
                held.dedup();
                assert_eq!(held.len(), count, "seed {seed}: an ID twice");
                assert_eq!(s.space().in_use(), count, "seed {seed}: an ID leaked");
            }
        }
    }
}
