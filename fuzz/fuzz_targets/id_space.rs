//! The ID space against a naive model of its rules, R1 to R9 and percid's own.
//!
//! The model is written from the documentation of `percid_rules::space`. It has sets and maps in
//! place of the product's words with counts from one, and no state that follows from other state.
#![no_main]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid_rules::space::{
    Assignment, CpuState, Distance, EXPIRY_MS, Eviction, FREQUENT_STEALS, IdState, Limits, Request,
    Space, SpaceCounters,
};

#[derive(Arbitrary, Debug)]
struct Input {
    cpus: u8,
    steps: Vec<(u8, Step)>,
}

/// A step of a driver, at a time that does not go back.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Step {
    /// A thread looks for an ID on a CPU.
    Enter { cpu: u8, thread: u8, previous_cpu: Option<u8>, limits: Bounds },
    /// The same, and there is no memory for the ID.
    EnterInVain { cpu: u8, thread: u8, limits: Bounds },
    /// A CPU's ID is taken back by a scan.
    Expire { cpu: u8 },
    /// A thief takes a CPU's ID and does not use it yet.
    Take { cpu: u8 },
    /// A free ID is reserved.
    HoldBack { id: u8 },
    /// One of those in transit is freed, or given to a CPU without one.
    PutBack { which: u8, cpu: Option<u8> },
    /// A program requests compaction.
    Compact { limits: Bounds },
    /// A pause of some periods.
    Sleep { periods: u8 },
}

#[derive(Arbitrary, Debug, Clone, Copy)]
struct Bounds {
    allowed: u8,
    threads: u8,
    most: u8,
}

impl Bounds {
    fn limits(self) -> Limits {
        let [allowed, threads, most] = [self.allowed, self.threads, self.most].map(|n| n % 12);
        Limits { allowed: allowed.into(), threads: threads.into(), most: most.into() }
    }
}

/// Returns the distance: two CPUs on a core, four behind a cache, eight on a node.
fn distance(a: u32, b: u32) -> Distance {
    let same = |size: u32| a / size == b / size;
    match (same(2), same(4), same(8)) {
        (true, ..) => Distance::SameCore,
        (_, true, _) => Distance::SameL3,
        (.., true) => Distance::SameNode,
        _ => Distance::Far,
    }
}

fuzz_target!(|input: Input| {
    let cpus = usize::from(input.cpus % 10) + 1;
    let (mut counts, mut cpu_states, mut id_states) =
        (SpaceCounters::default(), vec![CpuState::default(); cpus], vec![IdState::default(); cpus]);
    let space = Space::new(&mut counts, &mut cpu_states, &mut id_states);
    let mut both = Both { space, model: Model::new(cpus as u32), now: 0 };
    for (pause, step) in input.steps {
        both.now += u64::from(pause % 32);
        both.step(step);
        both.compare();
    }
});

/// The space and its model.
struct Both<'s> {
    space: Space<'s>,
    model: Model,
    now: u64,
}

impl Both<'_> {
    fn step(&mut self, step: Step) {
        let cpus = self.model.cpus;
        let of = |cpu: u8| u32::from(cpu) % cpus;
        match step {
            Step::Enter { cpu, thread, previous_cpu, limits } => {
                self.enter(of(cpu), thread.into(), previous_cpu.map(of), limits.limits());
            }
            Step::EnterInVain { cpu, thread, limits } => {
                let had = self.space.held(of(cpu)).is_some();
                self.enter(of(cpu), thread.into(), None, limits.limits());
                if !had {
                    self.space.revoke(of(cpu));
                    self.model.withdraw(of(cpu));
                }
            }
            Step::Expire { cpu } => self.take_and_free(of(cpu)),
            Step::Take { cpu } => {
                let taken = self.space.detach(of(cpu), true);
                assert_eq!(taken, self.model.take(of(cpu), true));
            }
            Step::HoldBack { id } => {
                let id = u32::from(id) % cpus;
                if id < self.model.count && self.model.is_free(id) {
                    self.space.reserve(id);
                    self.model.transit.insert(id);
                }
            }
            Step::PutBack { which, cpu } => self.put_back(which, cpu.map(of)),
            Step::Compact { limits } => {
                let eviction = self.space.compact(limits.limits());
                assert_eq!(eviction, self.model.compact(limits.limits()));
                self.evict(eviction);
            }
            Step::Sleep { periods } => self.now += u64::from(periods) * EXPIRY_MS / 2,
        }
    }

    /// Enters like the slow path of the table.
    fn enter(&mut self, cpu: u32, thread: u64, previous_cpu: Option<u32>, limits: Limits) {
        if self.space.held(cpu).is_some() {
            return;
        }
        let eviction = self.space.adjust_id_count(limits, self.now);
        assert_eq!(eviction, self.model.upkeep(limits, self.now), "upkeep");
        self.evict(eviction);
        let request = Request { cpu, thread, previous_cpu };
        let expected = self.model.choose(request, limits);
        let mut grant = self.space.select(request, limits, distance);
        assert_eq!(grant, expected, "{request:?} {limits:?}");
        // Before anything is stolen, what has expired is taken back.
        if matches!(grant, Assignment::Steal { .. } | Assignment::Unavailable) && self.scan() {
            grant = self.space.select(request, limits, distance);
            assert_eq!(grant, self.model.choose(request, limits), "after a scan");
        }
        let id = match grant {
            Assignment::Free(id) => id,
            Assignment::Steal { from, id } => {
                assert_eq!(self.space.detach(from, true), Some(id));
                assert_eq!(self.model.take(from, true), Some(id));
                id
            }
            Assignment::Unavailable => return,
        };
        self.give(cpu, id, thread);
        if self.model.transit.is_empty() {
            let most = limits.allowed.min(limits.most).max(limits.bound());
            assert!(id < most, "ID {id} beyond all bounds: {limits:?}");
        }
    }

    fn give(&mut self, cpu: u32, id: u32, thread: u64) {
        self.space.assign(cpu, id, thread, self.now);
        self.model.give(cpu, id, thread, self.now);
    }

    fn scan(&mut self) -> bool {
        let due = self.space.scan_due(self.now);
        assert_eq!(due, self.model.scan_due(self.now));
        if due {
            self.space.scanned(self.now);
            self.model.scanned = self.now;
            self.evict(Eviction::Expired);
        }
        due
    }

    fn evict(&mut self, eviction: Eviction) {
        for cpu in 0..self.model.cpus {
            let condemned = self.space.is_evicted(cpu, eviction, self.now);
            assert_eq!(condemned, self.model.is_evicted(cpu, eviction, self.now), "CPU {cpu}");
            if condemned {
                self.take_and_free(cpu);
            }
        }
    }

    fn take_and_free(&mut self, cpu: u32) {
        let taken = self.space.detach(cpu, false);
        assert_eq!(taken, self.model.take(cpu, false));
        if let Some(id) = taken {
            self.space.free(id);
            self.model.transit.remove(&id);
        }
    }

    fn put_back(&mut self, which: u8, cpu: Option<u32>) {
        let count = self.model.transit.len();
        let Some(&id) = self.model.transit.iter().nth(usize::from(which) % count.max(1)) else {
            return;
        };
        match cpu.filter(|&cpu| self.space.held(cpu).is_none()) {
            Some(cpu) => self.give(cpu, id, 99),
            None => {
                self.space.free(id);
                self.model.transit.remove(&id);
            }
        }
    }

    fn compare(&self) {
        let model = &self.model;
        let held: BTreeMap<u32, u32> =
            (0..model.cpus).filter_map(|cpu| Some((cpu, self.space.held(cpu)?))).collect();
        let expected = model.held.iter().map(|(&cpu, held)| (cpu, held.id)).collect();
        assert_eq!(held, expected);
        let distinct: BTreeSet<&u32> = held.values().collect();
        assert_eq!(distinct.len(), held.len(), "an ID on two CPUs");
        assert_eq!(self.space.max_nr_cid(), model.count);
        assert_eq!(self.space.in_use(), model.held.len() + model.transit.len());
    }
}

/// The ID of a CPU.
#[derive(Debug, Clone, Copy)]
struct Held {
    id: u32,
    taker: u64,
    since: u64,
}

/// The naive model.
#[derive(Debug)]
struct Model {
    cpus: u32,
    held: BTreeMap<u32, Held>,
    /// IDs between two CPUs.
    transit: BTreeSet<u32>,
    /// The ID that each CPU held last and that was not stolen.
    recent: BTreeMap<u32, u32>,
    /// The CPU that held each ID last.
    last: BTreeMap<u32, u32>,
    /// Number of IDs.
    count: u32,
    /// There may be IDs beyond the bound.
    extra: bool,
    /// The start of the interval in which steals are counted, and their number.
    counting: (u64, u64),
    /// `true` if there was no memory for an ID in that interval.
    refused: bool,
    scanned: u64,
}

impl Model {
    fn new(cpus: u32) -> Model {
        Model {
            cpus,
            held: BTreeMap::new(),
            transit: BTreeSet::new(),
            recent: BTreeMap::new(),
            last: BTreeMap::new(),
            count: 0,
            extra: false,
            counting: (0, 0),
            refused: false,
            scanned: 0,
        }
    }

    fn is_free(&self, id: u32) -> bool {
        !self.transit.contains(&id) && self.held.values().all(|held| held.id != id)
    }

    /// Returns `min(allowed CPUs, threads)`: the caller is a thread on an allowed CPU.
    fn bound(limits: Limits) -> u32 {
        limits.allowed.min(limits.threads).max(1)
    }

    /// Returns the bound while steals are frequent: up to the allowed CPUs or the configured
    /// maximum.
    fn relaxed_bound(limits: Limits) -> u32 {
        Model::bound(limits).max(limits.allowed.min(limits.most))
    }

    fn choose(&mut self, request: Request, limits: Limits) -> Assignment {
        // 1. Its recent ID, if that is free and below the number of IDs.
        if let Some(&recent) = self.recent.get(&request.cpu) {
            if recent < self.count && self.is_free(recent) {
                return Assignment::Free(recent);
            }
        }
        // 2. A new one inside the bound.
        if let Some(id) = self.new_below(Model::bound(limits)) {
            return Assignment::Free(id);
        }
        // 3. A free one: the one left behind, otherwise the nearest, otherwise the first.
        let free: Vec<u32> = (0..self.count).filter(|&id| self.is_free(id)).collect();
        let left = |id: &&u32| {
            request.previous_cpu.is_some() && self.last.get(*id) == request.previous_cpu.as_ref()
        };
        if let Some(&id) = free.iter().find(left) {
            return Assignment::Free(id);
        }
        for wanted in [Distance::SameCore, Distance::SameL3, Distance::SameNode, Distance::Far] {
            let found = free.iter().find(|id| {
                let last = self.last.get(id);
                last.map_or(Distance::Far, |&last| distance(request.cpu, last)) == wanted
            });
            if let Some(&id) = found {
                return Assignment::Free(id);
            }
        }
        // 4. An extra one while steals are frequent, or were.
        let frequent =
            self.counting.1 >= u64::from(FREQUENT_STEALS) * u64::from(Model::bound(limits));
        if (frequent || self.extra) && !self.refused {
            if let Some(id) = self.new_below(Model::relaxed_bound(limits)) {
                self.extra = true;
                return Assignment::Free(id);
            }
        }
        // 5. A stolen one: the ID that this thread took on its last CPU, otherwise the oldest.
        let own = request.previous_cpu.and_then(|cpu| Some((cpu, self.held.get(&cpu)?)));
        if let Some((from, held)) = own.filter(|(_, held)| held.taker == request.thread) {
            return Assignment::Steal { from, id: held.id };
        }
        let oldest =
            self.held.iter().max_by_key(|(cpu, held)| (Reverse(held.since), Reverse(**cpu)));
        oldest.map_or(Assignment::Unavailable, |(&from, held)| Assignment::Steal {
            from,
            id: held.id,
        })
    }

    fn new_below(&self, bound: u32) -> Option<u32> {
        // No more IDs than CPUs. Some may still be held from when the bound was larger.
        (self.count..bound.min(self.cpus)).find(|&id| self.is_free(id))
    }

    fn upkeep(&mut self, limits: Limits, now: u64) -> Eviction {
        let over = now - self.counting.0 >= EXPIRY_MS;
        if over {
            self.counting = (now, 0);
            self.refused = false;
        }
        if !self.extra || self.count > Model::relaxed_bound(limits) {
            return self.shrink(limits);
        }
        if !over {
            return Eviction::None;
        }
        // The demand: the CPUs visited within that time.
        self.scanned = now;
        let visited = self.held.values().filter(|held| now - held.since <= EXPIRY_MS);
        let demand = visited.count() as u32;
        if demand <= Model::bound(limits) {
            self.shrink(limits);
            return Eviction::Expired;
        }
        self.count = self.count.min(demand);
        Eviction::All
    }

    fn compact(&mut self, limits: Limits) -> Eviction {
        self.shrink(limits);
        Eviction::Expired
    }

    /// Applies R9, and returns the eviction by R8 that it causes.
    fn shrink(&mut self, limits: Limits) -> Eviction {
        self.extra = false;
        self.count = self.count.min(Model::bound(limits));
        let used = self.held.values().map(|held| &held.id).chain(&self.transit);
        match used.into_iter().any(|&id| id >= self.count) {
            true => Eviction::AboveBound,
            false => Eviction::None,
        }
    }

    fn is_evicted(&self, cpu: u32, eviction: Eviction, now: u64) -> bool {
        let Some(held) = self.held.get(&cpu) else { return false };
        let above = held.id >= self.count;
        match eviction {
            Eviction::None => false,
            Eviction::AboveBound => above,
            Eviction::Expired => above || now - held.since >= EXPIRY_MS,
            Eviction::All => true,
        }
    }

    fn scan_due(&self, now: u64) -> bool {
        now - self.scanned >= EXPIRY_MS
    }

    fn take(&mut self, cpu: u32, thief: bool) -> Option<u32> {
        let held = self.held.remove(&cpu)?;
        self.transit.insert(held.id);
        if thief {
            self.recent.remove(&cpu);
            self.counting.1 += 1;
        }
        Some(held.id)
    }

    fn give(&mut self, cpu: u32, id: u32, taker: u64, since: u64) {
        self.transit.remove(&id);
        self.held.insert(cpu, Held { id, taker, since });
        self.recent.insert(cpu, id);
        self.last.insert(id, cpu);
        self.count = self.count.max(id + 1);
    }

    fn withdraw(&mut self, cpu: u32) {
        let Some(held) = self.held.remove(&cpu) else { return };
        self.recent.remove(&cpu);
        self.last.remove(&held.id);
        self.refused = true;
        if held.id + 1 == self.count {
            self.count -= 1;
        }
    }
}
