//! Scheduler traces.

use std::path::PathBuf;
use std::sync::Arc;

use percid_sim::machine::Machine;
use percid_sim::policies::releases;
use percid_trace::replay::{self, Settings, SpaceReplay};
use percid_trace::{Error, parquet, read};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors;
use crate::interruptible::interruptible;
use crate::records;
use crate::table::Table;

fn failed(py: Python<'_>, path: &str, error: Error) -> PyErr {
    match error {
        Error::Io(cause) => errors::system(cause.raw_os_error(), format!("{path}: {cause}")),
        other => errors::named(py, "TraceError", format!("{path}: {other}")),
    }
}

/// Returns the events of a trace.
#[pyfunction]
pub(crate) fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    let name = path.display().to_string();
    let read = interruptible(py, Arc::default(), move |_| parquet::batches(&read::read(&path)?))?;
    let (schema, batches) = read.map_err(|error| failed(py, &name, error))?;
    Ok(Table::new(schema, batches))
}

/// Replays a trace on a machine, which is the text of a file. Returns a row for each address space and policy.
#[pyfunction]
pub(crate) fn replay_trace(
    py: Python<'_>,
    path: PathBuf,
    names: Vec<String>,
    machine: &str,
    area_bytes: u64,
) -> PyResult<Table> {
    let wrong = |why: String| errors::space(py, why);
    let find =
        |name: &String| releases::named(name).map_err(|why| wrong(format!("policy {name}: {why}")));
    let policies = names.iter().map(find).collect::<PyResult<Vec<_>>>()?;
    let machine = Machine::parse(machine).map_err(|fault| wrong(format!("machine: {fault}")))?;
    let file = path.display().to_string();
    let replayed = interruptible(py, Arc::default(), move |control| {
        let trace = read::read(&path)?;
        let settings = Settings { area_bytes, ..Settings::default() };
        let all = policies.into_iter().map(|policy| {
            let replay = replay::replay(&trace, &machine, policy, &settings, control)?;
            Ok(replay.spaces.iter().map(|space| row(policy.name, space)).collect::<Vec<Value>>())
        });
        Ok::<_, Error>(all.collect::<Result<Vec<Vec<Value>>, replay::TopologyMismatch>>())
    })?;
    let rows = replayed
        .map_err(|error| failed(py, &file, error))?
        .map_err(|misfit| wrong(format!("{file}: {misfit}")))?;
    Ok(records::table(rows.into_iter().flatten().collect()))
}

fn row(policy: &str, space: &SpaceReplay) -> Value {
    let tally = &space.tally;
    let acquisitions = tally.acquisitions.all();
    let mut row = serde_json::to_value(&space.summary).unwrap_or_default();
    let [same_cpu, same_core, same_l3, same_node] = tally.acquisitions.shares();
    row["policy"] = json!(policy);
    row["ids_used"] = json!(tally.ids_used);
    row["ids_bound"] = json!(tally.ids_bound);
    row["acquisitions"] = json!(acquisitions);
    row["first_uses"] = json!(tally.acquisitions.first);
    row["same_cpu"] = json!(same_cpu);
    row["same_core"] = json!(same_core);
    row["same_l3"] = json!(same_l3);
    row["same_node"] = json!(same_node);
    row["steals"] = json!(tally.work.steals);
    row["scans"] = json!(tally.work.scans);
    row["slow_paths"] = json!(tally.work.slow_paths);
    row["memory_bytes"] = json!(tally.memory_bytes);
    row["ns_per_turn"] = json!(tally.burst_ns as f64 / acquisitions.max(1) as f64);
    row["stuck"] = json!(space.stuck.map(|stuck| stuck.why.0));
    row
}
