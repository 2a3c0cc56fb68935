//! Campaigns: the simulation of a parameter space, run by run, in a store that any number of
//! processes and machines fill.
//!
//! A [`Space`] defines the runs: grids of machines, workloads, policies and parameters, and the
//! number of seeds of each combination. A [`Plan`] divides it into *cells* (a cell is one
//! combination) and *units*. A unit is some seeds of one cell, which are computed, stored and
//! resumed together. A [`Campaign`] returns the next unit, according to the completed ones. A
//! [`Job`] is a unit as text, with all data that is needed to compute it on another machine. Its
//! result is a Parquet file, with the same bytes for every worker.
//!
//! A store is a folder, or anything with named files; [`Directory`] is a local one:
//!
//! ```text
//! sweep.json                the plan: who opens the store for another one is refused
//! runs/machine=epyc-9654/workload=container/threads=8/policy=per-cpu/seeds-1-64.parquet
//! failures/...              why a unit could not be computed, under its name
//! table.parquet             all runs, when none is missing: the same bytes for the same space
//! ```
//!
//! Only [`run`] starts threads; it uses all CPUs.

mod campaign;
mod error;
mod job;
mod plan;
mod precision;
mod run;
mod space;
mod store;
pub mod table;
#[cfg(test)]
mod tests;

/// The library that defines the tables.
pub use arrow_array;
pub use campaign::{Campaign, RunCounts, Shard};
pub use error::Error;
pub use job::{Job, VERSION};
pub use plan::{CellSummary, DESCRIPTION, FAILURES, Merged, Plan, RUNS, TABLE, Unit};
pub use run::run;
pub use space::{Grid, ModuleHash, Named, Seeds, Space, Until};
pub use store::Directory;
