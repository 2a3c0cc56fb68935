//! Plans, campaigns and jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use percid_sim::run_control::RunControl;
use percid_sweep as sweep;
use percid_sweep::{Job, Shard, Space, Unit};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors;
use crate::interruptible::interruptible;
use crate::policy::OwnPolicy;
use crate::records;
use crate::table::Table;
use crate::threads;

/// A checked parameter space.
#[pyclass(frozen, module = "percid._native")]
#[derive(Debug)]
pub(crate) struct Plan {
    plan: Arc<sweep::Plan>,
    own: Option<OwnPolicy>,
}

#[pymethods]
impl Plan {
    /// Creates a plan. `own` is the name and the object of a policy that the space may name.
    #[new]
    #[pyo3(signature = (space, keeps_invalid, own=None))]
    fn new(
        py: Python<'_>,
        space: &str,
        keeps_invalid: bool,
        own: Option<(String, Py<PyAny>)>,
    ) -> PyResult<Plan> {
        let space: Space =
            serde_json::from_str(space).map_err(|fault| errors::space(py, fault.to_string()))?;
        let own = own.map(|(name, object)| OwnPolicy::new(py, &name, object)).transpose()?;
        let specs = own.iter().map(|own| own.spec).collect();
        let plan = py.detach(|| sweep::Plan::with_policies(space, keeps_invalid, specs));
        let plan = plan.map_err(|error| errors::of_sweep(py, error))?;
        Ok(Plan { plan: Arc::new(plan), own })
    }

    /// Returns the number of combinations.
    #[getter]
    fn cells(&self) -> usize {
        self.plan.cells()
    }

    /// Returns the maximum number of runs.
    #[getter]
    fn most_runs(&self) -> u64 {
        self.plan.most_runs()
    }

    /// Returns the contents of a store's sweep.json.
    #[getter]
    fn description(&self) -> String {
        self.plan.description()
    }

    /// Raises StoreError if a store with this description has other runs.
    fn expect_same(&self, py: Python<'_>, description: &str) -> PyResult<()> {
        self.plan.expect_same(description).map_err(|error| errors::of_sweep(py, error))
    }
}

/// A control that stops a computation on another thread.
#[pyclass(frozen, module = "percid._native")]
#[derive(Debug)]
pub(crate) struct Control(Arc<RunControl>);

#[pymethods]
impl Control {
    #[new]
    fn new() -> Control {
        Control(Arc::default())
    }

    fn stop(&self) {
        self.0.stop.store(true, Relaxed);
    }
}

/// The selection of the next unit.
#[pyclass(module = "percid._native")]
#[derive(Debug)]
pub(crate) struct Campaign {
    plan: Arc<sweep::Plan>,
    campaign: sweep::Campaign,
    begun: HashMap<String, Unit>,
}

#[pymethods]
impl Campaign {
    #[new]
    fn new(plan: &Plan, shard: Option<(u64, u64)>) -> PyResult<Campaign> {
        let is_good = |&(number, of): &(u64, u64)| (1..=of).contains(&number);
        if shard.as_ref().is_some_and(|shard| !is_good(shard)) {
            let expected = "shard: expected a number and how many there are, such as (2, 8)";
            return Err(PyValueError::new_err(expected));
        }
        let shard = shard.map(|(number, of)| Shard { number, of });
        let plan = plan.plan.clone();
        let campaign = sweep::Campaign::new(plan.clone(), shard);
        Ok(Campaign { plan, campaign, begun: HashMap::new() })
    }

    #[getter]
    fn needs_results(&self) -> bool {
        self.campaign.needs_results()
    }

    /// Returns the numbers of found, done, failed and remaining runs.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sweep::RunCounts { found, done, failed, left } = self.campaign.counts();
        let counts = PyDict::new(py);
        for (name, value) in [("found", found), ("done", done), ("failed", failed), ("left", left)]
        {
            counts.set_item(name, value)?;
        }
        Ok(counts)
    }

    /// Records a file of the store. Returns `True` if it belongs to this campaign.
    #[pyo3(signature = (name, bytes=None))]
    fn found(&mut self, py: Python<'_>, name: &str, bytes: Option<Vec<u8>>) -> PyResult<bool> {
        self.campaign.found(name, bytes).map_err(|error| errors::of_sweep(py, error))
    }

    /// Returns the next unit: its file's name, and the job to compute.
    fn next_unit(&mut self) -> Option<(String, String)> {
        let unit = self.campaign.next()?;
        let name = self.plan.name(unit);
        self.begun.insert(name.clone(), unit);
        Some((name, self.plan.job(unit).to_text()))
    }

    /// Records that a unit was computed.
    #[pyo3(signature = (name, bytes=None))]
    fn done(&mut self, py: Python<'_>, name: &str, bytes: Option<Vec<u8>>) -> PyResult<()> {
        let unit = self.unit(name)?;
        self.campaign.done(unit, bytes).map_err(|error| errors::of_sweep(py, error))
    }

    /// Records that a unit could not be computed.
    fn failed(&mut self, name: &str) -> PyResult<()> {
        let unit = self.unit(name)?;
        self.campaign.failed(unit);
        Ok(())
    }
}

impl Campaign {
    fn unit(&mut self, name: &str) -> PyResult<Unit> {
        self.begun.remove(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// Computes a job, and returns the bytes of its Parquet file.
#[pyfunction]
#[pyo3(signature = (job, control=None))]
pub(crate) fn compute<'py>(
    py: Python<'py>,
    job: &str,
    control: Option<&Control>,
) -> PyResult<Bound<'py, PyBytes>> {
    let job = Job::read(job).map_err(|error| errors::of_sweep(py, error))?;
    let control = control.map(|control| control.0.clone()).unwrap_or_default();
    let bytes = interruptible(py, control, move |control| job.compute(control))?;
    let bytes = bytes.map_err(|error| errors::of_sweep(py, error))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Simulates a whole plan: on all CPUs, or on one if it has a policy that needs the interpreter.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, plan: &Plan) -> PyResult<Table> {
    let Plan { plan, own } = plan;
    let (plan, is_serial) = (plan.clone(), own.is_some());
    let simulate = move |control: &RunControl| sweep::run(&plan, control);
    let table = interruptible(py, Arc::default(), move |control| match is_serial {
        true => threads::run_alone(|| simulate(control)),
        false => simulate(control),
    });
    if let Some(raised) = own.as_ref().and_then(OwnPolicy::end) {
        return Err(raised);
    }
    table?.map(Table::of).map_err(|error| errors::of_sweep(py, error))
}

/// Merges all runs that `read` finds into one table. Also returns the statistics of each
/// combination, and the names of the missing files.
#[pyfunction]
pub(crate) fn merge(
    py: Python<'_>,
    plan: &Plan,
    read: Bound<'_, PyAny>,
) -> PyResult<(Table, Table, Vec<String>)> {
    let mut raised = None;
    let merged = plan.plan.merge(|name| {
        let found = read.call1((name,)).and_then(|bytes| bytes.extract::<Option<Vec<u8>>>());
        found.map_err(|error| {
            raised = Some(error);
            sweep::Error::Stopped
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    let merged = merged.map_err(|error| errors::of_sweep(py, error))?;
    let cells = merged.cells.iter().map(|cell| serde_json::to_value(cell).unwrap_or_default());
    Ok((Table::of(merged.table), records::table(cells.collect()), merged.missing))
}
