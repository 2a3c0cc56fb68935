//! Simulation of a whole plan in memory.

use arrow_array::RecordBatch;
use percid_sim::run_control::RunControl;
use rayon::prelude::*;

use crate::error::Error;
use crate::plan::{Plan, Unit};
use crate::table;

/// Simulates all runs on all CPUs of this machine. Returns the same table that a sweep of the same
/// space has in the end.
///
/// # Errors
///
/// Returns an error if a run cannot be simulated, or if the simulation was stopped.
pub fn run(plan: &Plan, control: &RunControl) -> Result<RecordBatch, Error> {
    let cells: Result<Vec<Vec<RecordBatch>>, Error> =
        (0..plan.cells()).into_par_iter().map(|cell| units(plan, cell, control)).collect();
    let batches: Vec<RecordBatch> = cells?.into_iter().flatten().collect();
    Ok(table::join(&batches))
}

/// Simulates the units of one cell. If seeds continue until the mean is known, each unit depends on
/// the ones before.
fn units(plan: &Plan, cell: usize, control: &RunControl) -> Result<Vec<RecordBatch>, Error> {
    let compute = |chunk: u64| plan.batch(Unit { cell, chunk }, control);
    let chunks = plan.chunks_of_cell();
    if plan.space().seeds.until.is_none() {
        return (0..chunks).into_par_iter().map(compute).collect();
    }
    let (mut batches, mut values) = (Vec::new(), Vec::new());
    for chunk in 0..chunks {
        if plan.is_enough(&values) {
            break;
        }
        let batch = compute(chunk)?;
        values.extend(table::numbers(&batch, "ns_per_burst").unwrap_or_default());
        batches.push(batch);
    }
    Ok(batches)
}
