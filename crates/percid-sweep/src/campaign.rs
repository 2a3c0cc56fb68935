//! Which unit comes next.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::error::Error;
use crate::plan::{Plan, Unit};
use crate::table;

/// One of several processes that share a sweep without knowing of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

/// How far a campaign is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs that were there already.
    pub found: u64,
    /// Runs that were computed.
    pub done: u64,
    /// Runs that could not be.
    pub failed: u64,
    /// Runs that are still to do; if seeds go on until the mean is known, at most.
    pub left: u64,
}

/// The units of a plan that are to do, are being done and are done.
///
/// First tell it what is there ([`found`](Campaign::found)), then ask for units
/// ([`next`](Campaign::next)) and tell how each ended ([`done`](Campaign::done),
/// [`failed`](Campaign::failed)). The order in which units end does not matter.
#[derive(Debug)]
pub struct Campaign {
    plan: Arc<Plan>,
    /// Units by their names, as far as they are this shard's.
    units: HashMap<String, Unit>,
    ready: VecDeque<Unit>,
    counts: Counts,
    /// Of a sweep that goes on until means are known: what each cell has.
    cells: HashMap<usize, Known>,
    has_begun: bool,
}

/// What is known of a cell.
#[derive(Debug, Default)]
struct Known {
    /// The values of units, some of which may have come before those before them.
    values: HashMap<u64, Vec<Option<f64>>>,
    /// The first unit that was never asked for.
    next: u64,
    has_failed: bool,
}

impl Campaign {
    /// All of a plan, or a share of it.
    pub fn new(plan: Arc<Plan>, shard: Option<Shard>) -> Campaign {
        let shard = shard.unwrap_or(Shard { number: 1, of: 1 });
        let is_own = |place: u64| place % shard.of == shard.number - 1;
        let is_adaptive = plan.space().seeds.until.is_some();
        // Where a unit depends on those before it, whole cells are shared out.
        let own = plan.units().enumerate().filter(|(place, unit)| {
            is_own(if is_adaptive { unit.cell as u64 } else { *place as u64 })
        });
        let units: HashMap<String, Unit> = own.map(|(_, unit)| (plan.name(unit), unit)).collect();
        let mut counts = Counts::default();
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

    /// Whether [`found`](Campaign::found) and [`done`](Campaign::done) need the bytes of files,
    /// because what comes next depends on them.
    pub fn needs_results(&self) -> bool {
        self.plan.space().seeds.until.is_some()
    }

    /// A file is in the store: its name below [`RUNS`](crate::RUNS), and its bytes if these are
    /// needed. Says whether it is a unit of this campaign.
    ///
    /// # Errors
    ///
    /// A file that is not what was written there.
    pub fn found(&mut self, name: &str, bytes: Option<Vec<u8>>) -> Result<bool, Error> {
        let Some(unit) = self.units.get(name).copied() else { return Ok(false) };
        self.note(name, unit, bytes)?;
        self.units.remove(name);
        let runs = self.plan.seeds(unit.chunk).1;
        self.counts.found += runs;
        self.counts.left -= runs;
        Ok(true)
    }

    /// The next unit to compute. None if all are done, or being done: then one of those that are
    /// being done may make further ones necessary.
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

    /// A unit was computed.
    ///
    /// # Errors
    ///
    /// Bytes that are not what a unit's file has.
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

    /// A unit could not be computed.
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

    /// How far it is.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Notes the results of a unit where they decide what comes next.
    fn note(&mut self, name: &str, unit: Unit, bytes: Option<Vec<u8>>) -> Result<(), Error> {
        if !self.needs_results() {
            return Ok(());
        }
        let batch = self.plan.read_unit(name, unit.chunk, bytes.unwrap_or_default())?;
        let values = table::numbers(&batch, "ns_per_burst").unwrap_or_default();
        self.cells.entry(unit.cell).or_default().values.insert(unit.chunk, values);
        Ok(())
    }

    /// Makes those units of a cell ready that are needed by what is known of it: to begin with as
    /// many as it needs in any case, then one at a time.
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

    /// No more units of this cell are needed.
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
