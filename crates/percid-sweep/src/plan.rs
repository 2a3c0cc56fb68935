//! Plans: the cells and units of a space, with their names in a store.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use arrow_array::RecordBatch;
use percid_sim::comparison::{Comparison, MAX_RUNS};
use percid_sim::machine::Machine;
use percid_sim::policies::{ALL, PolicySpec, releases};
use percid_sim::run_control::RunControl;
use percid_sim::workload::Workload;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::job::{self, Job, VERSION};
use crate::precision;
use crate::space::{Grid, ModuleHash, Named, Seeds, Space};
use crate::table::{self, Joined};

/// The file of a store that describes its contents.
pub const DESCRIPTION: &str = "sweep.json";
/// The folder of a store that has a file for each unit.
pub const RUNS: &str = "runs";
/// The folder of a store that has the reasons of failed units.
pub const FAILURES: &str = "failures";
/// The file of a store that has all runs.
pub const TABLE: &str = "table.parquet";

/// Version of these names and of the file formats.
const FORMAT: u64 = 1;

/// Approximate number of events of a unit, which take a tenth of a second.
const EVENTS_OF_UNIT: u64 = 1 << 20;

/// Maximum number of seeds of a unit, so that the loss of a worker costs little.
const MOST_SEEDS_OF_UNIT: u64 = 64;

/// Maximum number of combinations that are checked before the simulation.
const CHECKED: usize = 1000;

/// A checked space.
#[derive(Debug)]
pub struct Plan {
    space: Space,
    cells: Vec<Cell>,
    /// Policies that are not part of the simulator.
    own: Vec<&'static PolicySpec>,
    /// Number of seeds of each unit, except a cell's last one.
    chunk: u64,
    /// First seed and number of seeds of each unit of a cell, if the space lists its seeds; empty
    /// otherwise.
    listed: Vec<(u64, u64)>,
}

/// Contents of the file [`DESCRIPTION`].
#[derive(Debug, Serialize)]
struct Described<'a> {
    percid: &'static str,
    format: u64,
    chunk: u64,
    space: &'a Space,
}

/// One combination.
#[derive(Debug, Clone)]
struct Cell {
    grid: usize,
    machine: usize,
    workload: usize,
    parameters: Vec<(String, f64)>,
    policy: String,
}

/// Some seeds of one combination, which are computed, stored and resumed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unit {
    pub(crate) cell: usize,
    pub(crate) chunk: u64,
}

/// All existing runs of a plan, in its order.
#[derive(Debug)]
pub struct Merged {
    /// The runs.
    pub table: RecordBatch,
    /// All combinations, in the plan's order, including those without any run.
    pub cells: Vec<CellSummary>,
    /// The names of missing files. If seeds continue until means are known, only the first one of
    /// each cell.
    pub missing: Vec<String>,
}

/// The results of one combination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellSummary {
    /// The machine's name.
    pub machine: String,
    /// The workload's name.
    pub workload: String,
    /// The parameters that are set.
    pub parameters: BTreeMap<String, f64>,
    /// The policy's name.
    pub policy: String,
    /// Number of existing runs.
    pub runs: u64,
    /// Mean of their `ns_per_burst`, in nanoseconds; `None` if there are no runs, or one of them
    /// had no burst.
    pub ns_per_burst: Option<f64>,
    /// Half of the 95 % interval of that mean, in nanoseconds; `None` for fewer than three runs.
    pub half_interval_ns: Option<f64>,
}

impl Plan {
    /// Checks a space, and numbers its cells and units.
    ///
    /// # Errors
    ///
    /// Returns what was expected if the space is invalid. Errors are unknown policies and
    /// parameters, files with errors, different machines with one name, and inconsistent numbers.
    /// At most 1000 combinations are checked, spread evenly. If `keeps_invalid` is set, invalid
    /// combinations are kept and become failures.
    pub fn new(space: Space, keeps_invalid: bool) -> Result<Plan, Error> {
        Plan::with_policies(space, keeps_invalid, Vec::new())
    }

    /// Creates a plan like [`Plan::new`]. The space may also name these policies, which are not
    /// part of the simulator. A store must identify them by [`Space::modules`].
    ///
    /// # Errors
    ///
    /// The errors are those of [`Plan::new`].
    pub fn with_policies(
        space: Space,
        keeps_invalid: bool,
        own: Vec<&'static PolicySpec>,
    ) -> Result<Plan, Error> {
        check_seeds(&space)?;
        let cells = cells(&space, &own)?;
        let mut plan = Plan { cells, own, space, chunk: 1, listed: Vec::new() };
        let most = plan.space.seeds.most().saturating_mul(plan.cells.len() as u64);
        if most > MAX_RUNS {
            return Err(Error::Space(format!("expected at most {MAX_RUNS} runs, found {most}")));
        }
        let step = plan.cells.len().div_ceil(CHECKED).max(1);
        let mut events = 1;
        for cell in (0..plan.cells.len()).step_by(step) {
            match plan.expected_events(cell) {
                Ok(found) => events = events.max(found),
                Err(_) if keeps_invalid => {}
                Err(fault) => {
                    return Err(Error::Space(format!("{}: {fault}", plan.title(cell))));
                }
            }
        }
        plan.chunk = (EVENTS_OF_UNIT / events).clamp(1, MOST_SEEDS_OF_UNIT);
        if plan.space.seeds.until.is_some() {
            // `is_enough` is called between units, so no unit may exceed the minimum.
            plan.chunk = plan.chunk.min(plan.space.seeds.count);
        }
        plan.listed = consecutive(&plan.space.seeds.list, plan.chunk);
        Ok(plan)
    }

    /// Creates the plan from the file [`DESCRIPTION`] of a store.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a description, or is from another version.
    pub fn described_by(text: &str) -> Result<Plan, Error> {
        let wrong = |why: String| Error::OtherSweep(format!("{DESCRIPTION}: {why}"));
        let found: Value = serde_json::from_str(text).map_err(|fault| wrong(fault.to_string()))?;
        expect_version(&found)?;
        let space = found.get("space").cloned().unwrap_or_default();
        let space = serde_json::from_value(space).map_err(|fault| wrong(fault.to_string()))?;
        Plan::new(space, true)
    }

    /// Returns the text of the file [`DESCRIPTION`].
    pub fn description(&self) -> String {
        let text = serde_json::to_string_pretty(&self.described());
        text.expect("strings and numbers can be written") + "\n"
    }

    fn described(&self) -> Described<'_> {
        Described { percid: VERSION, format: FORMAT, chunk: self.chunk, space: &self.space }
    }

    /// Checks that a store with this description has the runs of this plan.
    ///
    /// # Errors
    ///
    /// Returns the differences.
    pub fn expect_same(&self, description: &str) -> Result<(), Error> {
        let found: Value = serde_json::from_str(description)
            .map_err(|fault| Error::OtherSweep(format!("{DESCRIPTION}: {fault}")))?;
        expect_version(&found)?;
        let mut differences = Vec::new();
        let own = serde_json::to_value(self.described()).expect("strings and numbers");
        differ("", &found, &own, &mut differences);
        if differences.is_empty() {
            return Ok(());
        }
        let shown = differences.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
        Err(Error::OtherSweep(format!("it has the runs of another sweep: {shown}")))
    }

    /// Returns the space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Returns the number of combinations.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Returns the maximum number of runs.
    pub fn most_runs(&self) -> u64 {
        self.cells.len() as u64 * self.space.seeds.most()
    }

    pub(crate) fn chunks_of_cell(&self) -> u64 {
        match self.listed.len() {
            0 => self.space.seeds.most().div_ceil(self.chunk),
            units => units as u64,
        }
    }

    /// Returns a combination in words.
    fn title(&self, cell: usize) -> String {
        let Cell { grid, machine, workload, parameters, policy } = &self.cells[cell];
        let Grid { machines, workloads, .. } = &self.space.grids[*grid];
        let mut title = format!("{} on {}", workloads[*workload].name, machines[*machine].name);
        for (name, value) in parameters {
            let _ = write!(title, ", {name}={value}");
        }
        title + ", " + policy
    }

    fn expected_events(&self, cell: usize) -> Result<u64, Error> {
        let unit = self.job(Unit { cell, chunk: 0 });
        // The number depends on no policy, and the module of a store may be elsewhere.
        let policy = self.policy(cell).unwrap_or(&ALL[0]);
        unit.with_comparison(policy, |comparison: &Comparison<'_>| comparison.expected_events())?
            .map_err(|fault| Error::Space(fault.to_string()))
    }

    /// Returns the first seed of a unit, and the number of its seeds.
    pub(crate) fn seeds(&self, chunk: u64) -> (u64, u64) {
        if let Some(&listed) = self.listed.get(chunk as usize) {
            return listed;
        }
        let begin = chunk * self.chunk;
        let count = self.chunk.min(self.space.seeds.most() - begin);
        (self.space.seeds.first.wrapping_add(begin), count)
    }

    /// Returns the job of a unit, with all data that is needed to compute it.
    pub fn job(&self, unit: Unit) -> Job {
        let Cell { grid, machine, workload, parameters, policy } = &self.cells[unit.cell];
        let Grid { machines, workloads, memory, .. } = &self.space.grids[*grid];
        let (first, count) = self.seeds(unit.chunk);
        Job {
            percid: VERSION.to_owned(),
            machine: machines[*machine].clone(),
            workload: workloads[*workload].clone(),
            memory: memory.clone(),
            policy: policy.clone(),
            parameters: parameters.clone(),
            first,
            count,
        }
    }

    /// Returns the policy of a combination.
    fn policy(&self, cell: usize) -> Result<&'static PolicySpec, Error> {
        let name = &self.cells[cell].policy;
        named(name, &self.own).map_err(|why| Error::Space(format!("policy {name}: {why}")))
    }

    /// Simulates a unit on the calling thread. Returns the bytes of its Parquet file.
    ///
    /// # Errors
    ///
    /// The errors are those of [`Job::compute`], and a missing module.
    pub fn compute(&self, unit: Unit, control: &RunControl) -> Result<Vec<u8>, Error> {
        Ok(table::to_parquet(&self.batch(unit, control)?))
    }

    /// Simulates a unit on the calling thread.
    pub(crate) fn batch(&self, unit: Unit, control: &RunControl) -> Result<RecordBatch, Error> {
        let columns = self.job(unit).columns(self.policy(unit.cell)?, control)?;
        Ok(table::batch(columns))
    }

    /// Returns the name of a unit's file, below [`RUNS`] or [`FAILURES`] of the store. It has a
    /// folder for each parameter, in Hive's naming scheme.
    pub fn name(&self, unit: Unit) -> String {
        let (first, count) = self.seeds(unit.chunk);
        let last = first.wrapping_add(count - 1);
        format!("{}/seeds-{first}-{last}.parquet", self.folder(unit.cell))
    }

    fn folder(&self, cell: usize) -> String {
        self.cells[cell].folder(&self.space)
    }

    /// Returns all possible units, in the plan's order.
    pub fn units(&self) -> impl Iterator<Item = Unit> {
        let chunks = self.chunks_of_cell();
        (0..self.cells.len())
            .flat_map(move |cell| (0..chunks).map(move |chunk| Unit { cell, chunk }))
    }

    /// Returns `true` if a cell with these values of `ns_per_burst` so far needs no more units.
    pub(crate) fn is_enough(&self, values: &[Option<f64>]) -> bool {
        let seeds = &self.space.seeds;
        let runs = values.len() as u64;
        if runs < seeds.count {
            return false;
        }
        let Some(until) = seeds.until else { return runs >= seeds.count };
        // Further runs do not help if a run has no burst, and so no mean.
        let known: Option<Vec<f64>> = values.iter().copied().collect();
        runs >= until.most || known.is_none_or(|known| precision::is_known(&known, until.interval))
    }

    /// Merges all runs into one table, in the plan's order. `read` returns the bytes of a unit's
    /// file by its [`name`](Plan::name), or `None` if it does not exist.
    ///
    /// Needs about 1 kB of memory for each run.
    ///
    /// # Errors
    ///
    /// Returns the errors of `read`, or an error if a file is damaged.
    pub fn merge(
        &self,
        mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, Error>,
    ) -> Result<Merged, Error> {
        let (mut joined, mut missing, mut cells) = (Joined::default(), Vec::new(), Vec::new());
        for cell in 0..self.cells.len() {
            let mut values = Vec::new();
            for chunk in 0..self.chunks_of_cell() {
                if self.space.seeds.until.is_some() && self.is_enough(&values) {
                    break;
                }
                let name = self.name(Unit { cell, chunk });
                let Some(bytes) = read(&name)? else {
                    missing.push(name);
                    if self.space.seeds.until.is_some() {
                        break;
                    }
                    continue;
                };
                let batch = self.read_unit(&name, chunk, bytes)?;
                values.extend(table::numbers(&batch, "ns_per_burst").unwrap_or_default());
                joined.push(batch);
            }
            cells.push(self.summary(cell, &values));
        }
        Ok(Merged { table: joined.finish(), cells, missing })
    }

    fn summary(&self, cell: usize, values: &[Option<f64>]) -> CellSummary {
        let Cell { grid, machine, workload, parameters, policy } = &self.cells[cell];
        let Grid { machines, workloads, .. } = &self.space.grids[*grid];
        let all: Option<Vec<f64>> = values.iter().copied().collect();
        let all = all.filter(|all| !all.is_empty());
        CellSummary {
            machine: machines[*machine].name.clone(),
            workload: workloads[*workload].name.clone(),
            parameters: parameters.iter().cloned().collect(),
            policy: policy.clone(),
            runs: values.len() as u64,
            ns_per_burst: all.as_ref().map(|all| all.iter().sum::<f64>() / all.len() as f64),
            half_interval_ns: all
                .and_then(|all| precision::half_interval(&all))
                .map(|(_, half)| half),
        }
    }

    /// Returns the rows of a unit's file.
    pub(crate) fn read_unit(
        &self,
        name: &str,
        chunk: u64,
        bytes: Vec<u8>,
    ) -> Result<RecordBatch, Error> {
        let damaged = |why: String| Error::Damaged { file: format!("{RUNS}/{name}"), why };
        let batch = table::from_parquet(bytes).map_err(damaged)?;
        let (first, count) = self.seeds(chunk);
        let expected: Vec<Option<u64>> =
            (0..count).map(|nth| Some(first.wrapping_add(nth))).collect();
        if table::counts(&batch, "seed").as_ref() != Some(&expected) {
            return Err(damaged("it has other seeds than its name says".to_owned()));
        }
        Ok(batch)
    }
}

impl Cell {
    fn folder(&self, space: &Space) -> String {
        let grid = &space.grids[self.grid];
        let mut parts = vec![
            ("machine", grid.machines[self.machine].name.clone()),
            ("workload", grid.workloads[self.workload].name.clone()),
        ];
        parts.extend(grid.memory.as_ref().map(|memory| ("memory", memory.clone())));
        let values = self.parameters.iter().map(|(name, value)| (&**name, value.to_string()));
        parts.extend(values);
        parts.push(("policy", self.policy.clone()));
        let parts: Vec<String> = parts
            .iter()
            .map(|(key, value)| format!("{}={}", escaped(key), escaped(value)))
            .collect();
        parts.join("/")
    }
}

/// Replaces each byte that is not safe in file names everywhere by `%` and two digits.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn check_seeds(space: &Space) -> Result<(), Error> {
    let seeds = &space.seeds;
    let wrong = |why: String| Err(Error::Space(format!("seeds: {why}")));
    if seeds.count == 0 {
        return wrong("expected at least one".to_owned());
    }
    if !seeds.list.is_empty() {
        return check_list(seeds).map_or(Ok(()), wrong);
    }
    let Some(until) = seeds.until else { return Ok(()) };
    if until.interval.is_nan() || until.interval <= 0.0 {
        let found = until.interval;
        return wrong(format!("expected an interval above 0, such as 0.02, found {found}"));
    }
    if until.most < seeds.count {
        let (most, count) = (until.most, seeds.count);
        return wrong(format!("expected at most {most} to be at least the {count} to begin with"));
    }
    Ok(())
}

/// Returns the error of listed seeds.
fn check_list(Seeds { first, count, list, until }: &Seeds) -> Option<String> {
    if until.is_some() {
        return Some("expected either a list or `until`".to_owned());
    }
    if *count != list.len() as u64 || list.first() != Some(first) {
        return Some("expected a list that begins with `first` and has `count` seeds".to_owned());
    }
    let mut seen = HashSet::new();
    let twice = list.iter().find(|seed| !seen.insert(**seed))?;
    Some(format!("expected each one once, found {twice} twice"))
}

/// Returns the first seed and the number of seeds of each group of consecutive ones, which has at
/// most `most`.
fn consecutive(list: &[u64], most: u64) -> Vec<(u64, u64)> {
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for &seed in list {
        match groups.last_mut() {
            Some((first, count)) if *count < most && first.checked_add(*count) == Some(seed) => {
                *count += 1;
            }
            _ => groups.push((seed, 1)),
        }
    }
    groups
}

/// Returns all combinations, without duplicates.
fn cells(space: &Space, own: &[&'static PolicySpec]) -> Result<Vec<Cell>, Error> {
    expect_modules(&space.modules)?;
    expect_names(space.grids.iter().flat_map(|grid| &grid.machines), "machine")?;
    expect_names(space.grids.iter().flat_map(|grid| &grid.workloads), "workload")?;
    let mut all = Vec::new();
    for (number, grid) in space.grids.iter().enumerate() {
        let policies = check(grid, space, own)?;
        let combinations = combinations(grid);
        let size = grid.machines.len() * grid.workloads.len() * combinations.len();
        if (size * policies.len()) as u64 > MAX_RUNS {
            return Err(Error::Space(format!("expected at most {MAX_RUNS} combinations")));
        }
        for machine in 0..grid.machines.len() {
            for workload in 0..grid.workloads.len() {
                for parameters in &combinations {
                    all.extend(policies.iter().map(|policy| {
                        let (parameters, policy) = (parameters.clone(), policy.clone());
                        Cell { grid: number, machine, workload, parameters, policy }
                    }));
                }
            }
        }
    }
    if space.grids.len() > 1 {
        let mut seen = HashSet::new();
        all.retain(|cell| seen.insert(cell.folder(space)));
    }
    if all.is_empty() {
        return Err(Error::Space("expected at least one combination".to_owned()));
    }
    Ok(all)
}

/// Checks that items with the same name are equal.
fn expect_names<'a>(all: impl Iterator<Item = &'a Named>, what: &str) -> Result<(), Error> {
    let mut known: Vec<&Named> = Vec::new();
    for named in all {
        if known.iter().any(|other| other.name == named.name && other.text != named.text) {
            let name = &named.name;
            return Err(Error::Space(format!("expected one {what} named {name}, found two")));
        }
        known.push(named);
    }
    Ok(())
}

/// Checks that a grid is valid, and returns its policies.
fn check(grid: &Grid, space: &Space, own: &[&'static PolicySpec]) -> Result<Vec<String>, Error> {
    let mut policies = Vec::new();
    for name in &grid.policies {
        let is_module = space.modules.iter().any(|module| module.name == *name);
        let found = if is_module { Ok(&**name) } else { named(name, own).map(|found| found.name) };
        let found = found.map_err(|why| Error::Space(format!("policy {name}: {why}")))?;
        if !policies.iter().any(|known| known == found) {
            policies.push(found.to_owned());
        }
    }
    let machines = grid.machines.iter().map(job::machine).collect::<Result<Vec<_>, _>>()?;
    for workload in &grid.workloads {
        let workload = job::workload(workload, grid.memory.as_deref())?;
        for machine in &machines {
            try_parameters(machine, &workload, grid)?;
        }
    }
    Ok(policies)
}

/// Returns a policy of these, or of the simulator.
fn named(name: &str, own: &[&'static PolicySpec]) -> Result<&'static PolicySpec, String> {
    let found = own.iter().find(|known| known.name == name).copied();
    found.map_or_else(|| releases::named(name), Ok)
}

/// Checks that modules with the same name are equal.
fn expect_modules(modules: &[ModuleHash]) -> Result<(), Error> {
    for (at, module) in modules.iter().enumerate() {
        if modules[..at].iter().any(|other| other.name == module.name && other != module) {
            let why = format!("expected one module named {}, found two", module.name);
            return Err(Error::Space(why));
        }
    }
    Ok(())
}

fn try_parameters(machine: &Machine, workload: &Workload, grid: &Grid) -> Result<(), Error> {
    for (name, values) in &grid.parameters {
        if values.is_empty() {
            return Err(Error::Space(format!("{name}: expected at least one value")));
        }
        for &value in values {
            job::set(&mut machine.clone(), &mut workload.clone(), name, value)?;
        }
    }
    Ok(())
}

/// Returns all combinations of the parameters; the last parameter changes first.
fn combinations(grid: &Grid) -> Vec<Vec<(String, f64)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in &grid.parameters {
        let mut longer = Vec::new();
        for shorter in &all {
            for &value in values {
                let mut combination = shorter.clone();
                combination.push((name.clone(), value));
                if !longer.contains(&combination) {
                    longer.push(combination);
                }
            }
        }
        all = longer;
    }
    all
}

fn expect_version(found: &Value) -> Result<(), Error> {
    let text = |key: &str| found.get(key).map(|value| value.to_string().replace('"', ""));
    let expected = [("percid", VERSION.to_owned()), ("format", FORMAT.to_string())];
    for (key, expected) in expected {
        let found = text(key).unwrap_or_else(|| "none".to_owned());
        if found != expected {
            let why = format!("it was made by {key} {found}, this is {expected}");
            return Err(Error::OtherSweep(why));
        }
    }
    Ok(())
}

/// Collects the differences between two documents.
fn differ(path: &str, found: &Value, expected: &Value, into: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let mut keys: Vec<&String> = found.keys().chain(expected.keys()).collect();
            keys.sort();
            keys.dedup();
            let null = Value::Null;
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned();
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let (found, expected) = (of(found), of(expected));
                let or_null = |value: &Option<Value>| value.clone().unwrap_or(null.clone());
                differ(&below, &or_null(&found), &or_null(&expected), into);
            }
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                differ(&format!("{path}[{at}]"), found, expected, into);
            }
        }
        _ if found != expected => {
            let (found, expected) = (short(found), short(expected));
            into.push(format!("{path} is {found}, expected {expected}"));
        }
        _ => {}
    }
}

/// Returns a value, shortened to 60 characters.
fn short(value: &Value) -> String {
    let text = value.to_string();
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_those_of_files_everywhere() {
        assert_eq!(escaped("linux-6.12_a"), "linux-6.12_a");
        assert_eq!(escaped("a/b=c \u{e4}"), "a%2Fb%3Dc%20%C3%A4");
    }

    #[test]
    fn listed_seeds_make_units_of_consecutive_ones() {
        let end = u64::MAX;
        let list = [9, 1, 2, 3, 4, 6, 7, end, 0];
        let expected = [(9, 1), (1, 3), (4, 1), (6, 2), (end, 1), (0, 1)];
        assert_eq!(consecutive(&list, 3), expected);
        assert_eq!(consecutive(&[], 3), []);
    }

    #[test]
    fn differences_are_named_by_their_keys() {
        let mut found = Vec::new();
        let (one, other) =
            (json!({"a": [1, {"b": 2}], "c": 1}), json!({"a": [1, {"b": 3}], "d": 4}));
        differ("", &one, &other, &mut found);
        assert_eq!(
            found,
            ["a[1].b is 2, expected 3", "c is 1, expected null", "d is null, expected 4",]
        );
    }
}
