//! Merges the runs of a store, and of others of the same sweep, into its table.

use std::path::{Path, PathBuf};

use percid_command::exit::Failure;
use percid_sweep::{Directory, Error, Plan, TABLE, table};

use super::failure::failure;
use super::figures::Results;

pub(super) fn merge(path: &Path, from: &[PathBuf]) -> Result<Results, Failure> {
    let (store, plan) = open(path, from).map_err(failure)?;
    for other in from {
        copy(other, &plan, &store).map_err(failure)?;
    }
    let mut results = Results::of_store(path, &plan);
    show(&store, &plan, &mut results)?;
    Ok(results)
}

/// Opens the store. If it does not exist, it is created like the first of the others.
fn open(path: &Path, from: &[PathBuf]) -> Result<(Directory, Plan), Error> {
    match (path.exists(), from.first()) {
        (false, Some(other)) => {
            let (_, plan) = Directory::existing(other)?;
            Ok((Directory::open(path, &plan)?, plan))
        }
        _ => Directory::existing(path),
    }
}

fn copy(other: &Path, plan: &Plan, store: &Directory) -> Result<(), Error> {
    // It must be a store; opening it with the plan checks that it belongs to this sweep.
    Directory::existing(other)?;
    let other = Directory::open(other, plan)?;
    for name in other.runs()? {
        if store.read_runs(&name)?.is_some() {
            continue;
        }
        if let Some(bytes) = other.read_runs(&name)? {
            store.write_runs(&name, &bytes)?;
        }
    }
    Ok(())
}

/// Writes the table if nothing is missing, and records the state of the store.
pub(super) fn show(store: &Directory, plan: &Plan, results: &mut Results) -> Result<(), Failure> {
    let merged = plan.merge(|name| store.read_runs(name)).map_err(failure)?;
    results.missing = merged.missing.len();
    results.first_missing = merged.missing.into_iter().next();
    results.rows = Some(merged.cells);
    if results.missing == 0 {
        store.write_table(&table::to_parquet(&merged.table)).map_err(failure)?;
        results.table = Some(format!("{}/{TABLE}", results.store));
    }
    Ok(())
}
