//! Published results beside simulated ones.

use std::sync::Arc;

use percid_sim::paper::cross_validation::{Left, Predicted};
use percid_sim::paper::setting::Setting;
use percid_sim::paper::{cross_validation, intermittent, predictions};
use percid_sim::run_control::RunControl;
use percid_sim::{mask, numa};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;

use crate::errors;
use crate::interruptible::interruptible;
use crate::records;
use crate::table::Table;

/// Returns the rows of a part of the comparison.
#[pyfunction]
pub(crate) fn published(py: Python<'_>, part: &str, seed: u64) -> PyResult<Table> {
    let simulate: fn(u64, &RunControl) -> Option<Vec<Value>> = match part {
        "intermittent" => |seed, control| Some(rows(&intermittent::paper(seed, control)?.rows)),
        "cross_validation" => |seed, control| {
            let found = cross_validation::cross_validation(&Setting::published(), seed, control)?;
            Some(found.rows.iter().chain(&found.delays).flat_map(left).collect())
        },
        "predictions" => |seed, control| Some(rows(&predictions::predictions(seed, control))),
        "mask" => |seed, _| Some(rows(&mask::paper(seed).rows)),
        "numa" => |seed, _| Some(rows(&numa::paper::paper(seed).rows)),
        other => return Err(errors::space(py, format!("no part is named {other}"))),
    };
    let rows = interruptible(py, Arc::default(), move |control| simulate(seed, control))?;
    let rows = rows.ok_or_else(|| PyKeyboardInterrupt::new_err("stopped"))?;
    Ok(records::table(rows))
}

fn rows(rows: &[impl Serialize]) -> Vec<Value> {
    rows.iter().map(|row| serde_json::to_value(row).unwrap_or_default()).collect()
}

/// Returns the cells that were left out of a fit, with the name of the omission.
fn left(left: &Left) -> Vec<Value> {
    let cell = |cell: &Predicted| {
        let mut row = serde_json::to_value(cell).unwrap_or_default();
        row["left_out"] = Value::String(left.left_out.clone());
        row
    };
    left.cells.iter().map(cell).collect()
}
