//! Jobs: units that can be computed anywhere.

use percid_sim::columns::{Column, Values, columns};
use percid_sim::comparison::{self, Comparison, Row};
use percid_sim::machine::Machine;
use percid_sim::policies::{PolicySpec, releases};
use percid_sim::run_control::RunControl;
use percid_sim::workload::{Memory, Workload};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::space::Named;
use crate::table;

/// The version of percid. Jobs and stores belong to one version, because the next one may simulate
/// something else.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Some seeds of one combination, with all data that they depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The version of percid that made the job.
    pub percid: String,
    /// The machine.
    pub machine: Named,
    /// The workload.
    pub workload: Named,
    /// The kind of memory that bursts write to; the workload's if `None`.
    pub memory: Option<String>,
    /// The policy's name.
    pub policy: String,
    /// The parameters that are set.
    pub parameters: Vec<(String, f64)>,
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub count: u64,
}

impl Job {
    /// Reads a job from its text.
    ///
    /// # Errors
    ///
    /// Returns an error if the job is from another version of percid, or if the text is not a job.
    pub fn read(text: &str) -> Result<Job, Error> {
        let wrong = |fault: serde_json::Error| Error::Space(format!("not a job: {fault}"));
        let found: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
        // Another version's job may have other fields, so the version is checked before the fields.
        match found.get("percid").and_then(|version| version.as_str()) {
            Some(VERSION) => serde_json::from_value(found).map_err(wrong),
            other => Err(Error::OtherVersion {
                job: other.unwrap_or("of no version").to_owned(),
                worker: VERSION.to_owned(),
            }),
        }
    }

    /// Returns the text to send.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers can be written")
    }

    /// Simulates the job on the calling thread. Returns the bytes of its Parquet file, with a row
    /// for each seed.
    ///
    /// # Errors
    ///
    /// Returns an error if the job is invalid, if it was stopped, or if the simulator panics.
    pub fn compute(&self, control: &RunControl) -> Result<Vec<u8>, Error> {
        let policy = releases::named(&self.policy).map_err(Error::Space)?;
        Ok(table::to_parquet(&table::batch(self.columns(policy, control)?)))
    }

    /// Simulates the job with its policy and returns the rows as columns.
    pub(crate) fn columns(
        &self,
        policy: &'static PolicySpec,
        control: &RunControl,
    ) -> Result<Vec<Column>, Error> {
        let simulate = || {
            let each = |comparison: &Comparison<'_>| comparison.each_run_in_turn(control);
            self.with_comparison(policy, each)
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(simulate))
            .map_err(|cause| Error::Run(format!("the simulator panicked: {}", told(&*cause))))?;
        let rows = result?.map_err(|fault| Error::Run(fault.to_string()))?;
        if (rows.len() as u64) < self.count {
            return Err(Error::Stopped);
        }
        let (seeds, rows): (Vec<u64>, Vec<Row>) = rows.into_iter().unzip();
        Ok(columns(self.head(seeds)?, &rows))
    }

    /// Returns the columns that describe each row.
    fn head(&self, seeds: Vec<u64>) -> Result<Vec<Column>, Error> {
        let workload = workload(&self.workload, self.memory.as_deref())?;
        let memories: Vec<&str> = workload.memories().into_iter().map(Memory::name).collect();
        let rows = seeds.len();
        let text = |name: &str, value: String| Column {
            name: name.to_owned(),
            values: Values::Text(vec![value; rows]),
        };
        let seeds = Values::Count(seeds.into_iter().map(Some).collect());
        Ok(vec![
            text("machine", self.machine.name.clone()),
            text("workload", self.workload.name.clone()),
            text("memory", memories.join(" and ")),
            Column { name: "seed".to_owned(), values: seeds },
        ])
    }

    /// Calls `with` with the comparison to simulate.
    pub(crate) fn with_comparison<T>(
        &self,
        policy: &'static PolicySpec,
        with: impl FnOnce(&Comparison<'_>) -> T,
    ) -> Result<T, Error> {
        let machine = machine(&self.machine)?;
        let workload = workload(&self.workload, self.memory.as_deref())?;
        let sweeps: Vec<(String, Vec<f64>)> =
            self.parameters.iter().map(|(name, value)| (name.clone(), vec![*value])).collect();
        Ok(with(&Comparison {
            machine: &machine,
            workload: &workload,
            sweeps: &sweeps,
            policies: &[policy],
            seeds: self.count,
            seed: self.first,
            spans: 0,
        }))
    }
}

fn told(cause: &(dyn std::any::Any + Send)) -> &str {
    let text = cause.downcast_ref::<&str>().copied();
    text.or_else(|| cause.downcast_ref::<String>().map(|text| &**text)).unwrap_or("no message")
}

/// Reads a machine.
pub(crate) fn machine(named: &Named) -> Result<Machine, Error> {
    Machine::parse(&named.text)
        .map_err(|fault| Error::Space(format!("machine {}: {fault}", named.name)))
}

/// Reads a workload.
pub(crate) fn workload(named: &Named, memory: Option<&str>) -> Result<Workload, Error> {
    let mut workload = Workload::parse(&named.text)
        .map_err(|fault| Error::Space(format!("workload {}: {fault}", named.name)))?;
    if let Some(name) = memory {
        let found = Memory::ALL.into_iter().find(|(known, _)| *known == name);
        let (_, memory) = found.ok_or_else(|| {
            let known = Memory::ALL.map(|(name, _)| name).join(", ");
            Error::Space(format!("memory: expected one of {known}, found {name}"))
        })?;
        workload.set_memory(memory);
    }
    Ok(workload)
}

/// Sets a parameter of the workload or a number of the machine.
pub(crate) fn set(
    machine: &mut Machine,
    workload: &mut Workload,
    name: &str,
    value: f64,
) -> Result<(), Error> {
    comparison::set(machine, workload, name, value)
        .map_err(|fault| Error::Space(format!("parameter {name}: {fault}")))
}
