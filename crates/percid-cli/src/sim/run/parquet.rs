//! The rows of a comparison as Parquet, if the library for it is built in.

use std::path::Path;

use percid_command::exit::Failure;

use crate::sim::parquet_support;
use percid_sim::results::Results;

/// Checks that a file can be written. Called before the simulation.
pub(super) fn expect_support() -> Result<(), Failure> {
    parquet_support::expect("--parquet", "this one can write --csv")
}

/// Writes the table to a file.
#[cfg(feature = "sweep")]
pub(super) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
    let bytes = percid_sweep::table::to_parquet(&percid_sweep::table::batch(results.columns()));
    let cannot = || format!("cannot write Parquet to {}", path.display());
    std::fs::write(path, bytes).map_err(|cause| Failure::new(cannot(), cause))
}

/// Fails with the error of [`expect_support`], which prevents calls.
#[cfg(not(feature = "sweep"))]
pub(super) fn write(_results: &Results, _path: &Path) -> Result<(), Failure> {
    expect_support()
}
