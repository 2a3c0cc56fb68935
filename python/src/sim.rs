//! Machines, workloads and policies.

use std::fmt::Display;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_sim::comparison::{self, Comparison};
use percid_sim::engine::Span;
use percid_sim::file;
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
/// With `kernel_numbers`, the CPUs of `this` have the kernel's numbers.
#[pyfunction]
pub(crate) fn machine_text(
    py: Python<'_>,
    name: String,
    kernel_numbers: bool,
) -> PyResult<(String, String)> {
    let label = presets::label(&name).to_owned();
    let numbering = if kernel_numbers { Numbering::Kernel } else { Numbering::Dense };
    let found = py.detach(|| presets::machine(&name, numbering));
    let machine = found.map_err(|failure| errors::of_command(py, failure))?;
    Ok((label, machine.to_toml()))
}

/// Returns the name and the text of a workload's file: of a preset by name, or of a file.
#[pyfunction]
pub(crate) fn workload_text(py: Python<'_>, name: &str) -> PyResult<(String, String)> {
    let found = presets::workload(name).map_err(|failure| errors::of_command(py, failure))?;
    Ok((presets::label(name).to_owned(), found.text().to_owned()))
}

/// Converts a JSON document to the text of a machine's or a workload's file.
#[pyfunction]
pub(crate) fn text_of(py: Python<'_>, kind: &str, name: &str, document: &str) -> PyResult<String> {
    let wrong = |why: &dyn Display| errors::space(py, format!("{kind} {name}: {why}"));
    let value: Value = serde_json::from_str(document).map_err(|fault| wrong(&fault))?;
    let text = toml::to_string(&value).map_err(|fault| wrong(&fault))?;
    let parsed = match kind {
        "machine" => Machine::parse(&text).err(),
        _ => Workload::parse(&text).err(),
    };
    match parsed {
        None => Ok(text),
        Some(fault) => Err(wrong(&without_line(&text, &fault))),
    }
}

/// Returns the error without its line, because the caller has not seen the file. A value of a wrong
/// type is named by the line's text instead.
fn without_line(text: &str, fault: &file::Error) -> String {
    let message = fault.message();
    let line = fault.line().and_then(|number| text.lines().nth(number - 1));
    match line.filter(|_| message.starts_with("invalid")) {
        Some(line) => format!("{line}: {message}"),
        None => message.to_owned(),
    }
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
    let spans: Vec<_> = rows.iter().flat_map(|row| &row.spans).collect();
    let column = |of: fn(&Span) -> u64| -> ArrayRef {
        Arc::new(spans.iter().map(|&span| of(span)).collect::<UInt64Array>())
    };
    // The columns are there even if there is no span.
    let columns = [
        ("cpu", column(|span| span.cpu.into())),
        ("id", column(|span| span.id.into())),
        ("from_ns", column(|span| span.from)),
        ("to_ns", column(|span| span.to)),
    ];
    let batch = RecordBatch::try_from_iter(columns).map_err(|fault| wrong(fault.to_string()))?;
    Ok(Table::of(batch))
}
