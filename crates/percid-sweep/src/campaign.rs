//! The order in which units are computed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::error::Error;
use crate::plan::{Plan, Unit};
use crate::table;

/// One of several processes that share a sweep without communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of this process, from 1.
    pub number: u64,
    /// Number of processes.
    pub of: u64,
}

/// Progress of a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Number of runs that already existed.
    pub found: u64,
    /// Number of runs that were computed.
    pub done: u64,
    /// Number of runs that could not be computed.
    pub failed: u64,
    /// Number of runs that are left; the maximum, if seeds continue until the mean is known.
    pub left: u64,
}

/// The pending, active and completed units of a plan.
///
/// First report the existing files ([`found`](Campaign::found)). Then request units
/// ([`next`](Campaign::next)), and report the end of each one ([`done`](Campaign::done),
/// [`failed`](Campaign::failed)). The order in which units end does not matter.
#[derive(Debug)]
pub struct Campaign {
    plan: Arc<Plan>,
    /// This shard's units that are not completed, by name.
    units: HashMap<String, Unit>,
    ready: VecDeque<Unit>,
    counts: RunCounts,
    /// Results by cell, if seeds continue until means are known.
    cells: HashMap<usize, Known>,
    has_begun: bool,
}

/// The results of a cell.
#[derive(Debug, Default)]
struct Known {
    /// Values of the completed units, by chunk; they may arrive in any order.
    values: HashMap<u64, Vec<Option<f64>>>,
    /// The first chunk that was never made ready.
    next: u64,
    has_failed: bool,
}

impl Campaign {
    /// Creates a campaign for all units of a plan, or for a shard of them.
    ///
    /// # Panics
    ///
    /// If the shard's number is not in 1 to its number of processes.
    pub fn new(plan: Arc<Plan>, shard: Option<Shard>) -> Campaign {
        let shard = shard.unwrap_or(Shard { number: 1, of: 1 });
        assert!((1..=shard.of).contains(&shard.number), "{shard:?}: expected 1 to {}", shard.of);
        let is_own = |place: u64| place % shard.of == shard.number - 1;
        let is_adaptive = plan.space().seeds.until.is_some();
        // If a unit depends on earlier ones, shards have whole cells.
        let own = plan.units().enumerate().filter(|(place, unit)| {
            is_own(if is_adaptive { unit.cell as u64 } else { *place as u64 })
        });
        let units: HashMap<String, Unit> = own.map(|(_, unit)| (plan.name(unit), unit)).collect();
        let mut counts = RunCounts::default();
        units.values().for_each(|unit| counts.left += plan.seeds(unit.chunk).1);
        Campaign {
            plan,
            units,
            ready: VecDeque::new(),
            counts,
            cells: HashMap::new(),
            has_begun: false,
        }
    }

    /// Returns `true` if [`found`](Campaign::found) and [`done`](Campaign::done) need the bytes of
    /// files, because later units depend on them.
    pub fn needs_results(&self) -> bool {
        self.plan.space().seeds.until.is_some()
    }

    /// Reports a file in the store, by its name below [`RUNS`](crate::RUNS). `bytes` are its
    /// contents, if [`needs_results`](Campaign::needs_results). Returns `true` if it is a unit of
    /// this campaign.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is damaged.
    pub fn found(&mut self, name: &str, bytes: Option<Vec<u8>>) -> Result<bool, Error> {
        let Some(unit) = self.units.get(name).copied() else { return Ok(false) };
        self.note(name, unit, bytes)?;
        self.units.remove(name);
        let runs = self.plan.seeds(unit.chunk).1;
        self.counts.found += runs;
        self.counts.left -= runs;
        Ok(true)
    }

    /// Returns the next unit to compute. Returns `None` if all others are completed or active; the
    /// end of an active one may make further ones necessary.
    #[expect(clippy::should_implement_trait, reason = "it may have more after it had none")]
    pub fn next(&mut self) -> Option<Unit> {
        if !self.has_begun {
            self.has_begun = true;
            self.begin();
        }
        self.ready.pop_front()
    }

    fn begin(&mut self) {
        if !self.needs_results() {
            let mut units: Vec<Unit> = self.units.values().copied().collect();
            units.sort_unstable();
            self.ready = units.into();
            return;
        }
        let mut cells: Vec<usize> = self.units.values().map(|unit| unit.cell).collect();
        cells.extend(self.cells.keys());
        cells.sort_unstable();
        cells.dedup();
        cells.into_iter().for_each(|cell| self.go_on(cell));
    }

    /// Reports a computed unit.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not those of a unit's file.
    pub fn done(&mut self, unit: Unit, bytes: Option<Vec<u8>>) -> Result<(), Error> {
        let name = self.plan.name(unit);
        self.note(&name, unit, bytes)?;
        if self.units.remove(&name).is_some() {
            let runs = self.plan.seeds(unit.chunk).1;
            self.counts.done += runs;
            self.counts.left -= runs;
        }
        if self.needs_results() {
            self.go_on(unit.cell);
        }
        Ok(())
    }

    /// Reports a unit that could not be computed.
    pub fn failed(&mut self, unit: Unit) {
        if self.units.remove(&self.plan.name(unit)).is_some() {
            let runs = self.plan.seeds(unit.chunk).1;
            self.counts.failed += runs;
            self.counts.left -= runs;
        }
        if self.needs_results() {
            self.cells.entry(unit.cell).or_default().has_failed = true;
            self.end(unit.cell);
        }
    }

    /// Returns the progress.
    pub fn counts(&self) -> RunCounts {
        self.counts
    }

    /// Stores the results of a unit if later units depend on them.
    fn note(&mut self, name: &str, unit: Unit, bytes: Option<Vec<u8>>) -> Result<(), Error> {
        if !self.needs_results() {
            return Ok(());
        }
        let batch = self.plan.read_unit(name, unit.chunk, bytes.unwrap_or_default())?;
        let values = table::numbers(&batch, "ns_per_burst").unwrap_or_default();
        self.cells.entry(unit.cell).or_default().values.insert(unit.chunk, values);
        Ok(())
    }

    /// Makes the necessary units of a cell ready, according to its results: first the minimum
    /// number, then one at a time.
    fn go_on(&mut self, cell: usize) {
        let plan = self.plan.clone();
        let known = self.cells.entry(cell).or_default();
        if known.has_failed {
            return;
        }
        let (mut values, mut unbroken) = (Vec::new(), 0);
        while let Some(more) = known.values.get(&unbroken) {
            if plan.is_enough(&values) {
                break;
            }
            values.extend(more);
            unbroken += 1;
        }
        if plan.is_enough(&values) {
            return self.end(cell);
        }
        let least = plan.space().seeds.count.div_ceil(plan.seeds(0).1);
        let wanted = least.max(unbroken + 1).min(plan.chunks_of_cell());
        for chunk in known.next..wanted {
            if !known.values.contains_key(&chunk) {
                self.ready.push_back(Unit { cell, chunk });
            }
        }
        known.next = known.next.max(wanted);
    }

    /// Removes the remaining units of a cell.
    fn end(&mut self, cell: usize) {
        let plan = self.plan.clone();
        let counts = &mut self.counts;
        self.units.retain(|_, unit| {
            let stays = unit.cell != cell;
            if !stays {
                counts.left -= plan.seeds(unit.chunk).1;
            }
            stays
        });
        self.ready.retain(|unit| unit.cell != cell);
    }
}
