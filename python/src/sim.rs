//! Machines, workloads and policies.

use std::sync::Arc;

use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_sim::comparison::{self, Comparison};
use percid_sim::machine::Machine;
use percid_sim::policies::{self, releases};
use percid_sim::run_control::RunControl;
use percid_sim::workload::Workload;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors;
use crate::interruptible::interruptible;
use crate::records;
use crate::table::Table;

/// Returns the name and the text of a machine's file: of a preset by name, of `this`, or of a file.
#[pyfunction]
pub(crate) fn machine_text(py: Python<'_>, name: String) -> PyResult<(String, String)> {
    let label = presets::label(&name).to_owned();
    let found = py.detach(|| presets::machine(&name, Numbering::Dense));
    let machine = found.map_err(|failure| errors::of_command(py, failure))?;
    Ok((label, machine.to_toml()))
}

/// Returns the name and the text of a workload's file: of a preset by name, or of a file.
#[pyfunction]
pub(crate) fn workload_text(py: Python<'_>, name: &str) -> PyResult<(String, String)> {
    let found = presets::workload(name).map_err(|failure| errors::of_command(py, failure))?;
    Ok((presets::label(name).to_owned(), found.text().to_owned()))
}

/// Converts a JSON document to TOML.
#[pyfunction]
pub(crate) fn toml_of(py: Python<'_>, document: &str) -> PyResult<String> {
    let value: Value =
        serde_json::from_str(document).map_err(|fault| errors::space(py, fault.to_string()))?;
    toml::to_string(&value).map_err(|fault| errors::space(py, fault.to_string()))
}

/// Returns the machines, workloads or policies that are part of the simulator.
#[pyfunction]
pub(crate) fn catalogue(py: Python<'_>, what: &str) -> PyResult<Table> {
    let rows: Vec<Value> = match what {
        "machines" => Machine::presets()
            .filter_map(|name| Some((name, Machine::preset(name)?)))
            .map(|(name, machine)| {
                let topology = &machine.topology;
                let (cpus, l3s, nodes) = (topology.cpus(), topology.l3s(), topology.nodes());
                json!({ "name": name, "about": machine.name, "cpus": cpus, "l3s": l3s, "nodes": nodes })
            })
            .collect(),
        "workloads" => Workload::presets()
            .filter_map(|name| Some((name, Workload::preset(name)?)))
            .map(|(name, workload)| {
                let Workload { about, parameters, .. } = workload;
                let list = serde_json::to_string(&parameters).unwrap_or_default();
                json!({ "name": name, "about": about, "parameters": list })
            })
            .collect(),
        "policies" => policies::ALL
            .iter()
            .map(|entry| json!({ "name": entry.name, "about": entry.about }))
            .collect(),
        other => return Err(errors::space(py, format!("nothing is listed as {other}"))),
    };
    Ok(records::table(rows))
}

/// Returns the time spans in which each CPU used each ID, in one run.
#[pyfunction]
pub(crate) fn spans(
    py: Python<'_>,
    machine: &str,
    workload: &str,
    policy: &str,
    parameters: Vec<(String, f64)>,
    seed: u64,
    most: usize,
) -> PyResult<Table> {
    let wrong = |why: String| errors::space(py, why);
    let mut machine =
        Machine::parse(machine).map_err(|fault| wrong(format!("machine: {fault}")))?;
    let mut workload =
        Workload::parse(workload).map_err(|fault| wrong(format!("workload: {fault}")))?;
    for (name, value) in &parameters {
        comparison::set(&mut machine, &mut workload, name, *value)
            .map_err(|fault| wrong(format!("parameter {name}: {fault}")))?;
    }
    let policy = releases::named(policy).map_err(|why| wrong(format!("policy {policy}: {why}")))?;
    let control = Arc::new(RunControl::default());
    let rows = interruptible(py, control, move |control| {
        let comparison = Comparison {
            machine: &machine,
            workload: &workload,
            sweeps: &[],
            policies: &[policy],
            seeds: 1,
            seed,
            spans: most,
        };
        comparison.simulate(control)
    })?;
    let rows = rows.map_err(|fault| wrong(fault.to_string()))?;
    let spans = rows.iter().flat_map(|row| &row.spans);
    Ok(records::table(
        spans
            .map(|span| {
                json!({ "cpu": span.cpu, "id": span.id, "from_ns": span.from, "to_ns": span.to })
            })
            .collect(),
    ))
}
