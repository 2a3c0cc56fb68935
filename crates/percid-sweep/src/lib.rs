//! Campaigns: a parameter space, simulated run by run, in a store that any number of processes and
//! machines fill.
//!
//! A [`Space`] says what is simulated: grids of machines, workloads, policies and parameters, and
//! how many seeds each combination gets. A [`Plan`] makes *cells* of it (a cell is one combination)
//! and *units*, each some seeds of one cell: what is computed, stored and resumed at a time. A
//! [`Campaign`] says which unit comes next, by what is done already. A [`Job`] is a unit with all
//! that is needed to compute it elsewhere: text, for any way to send text. Its result is a Parquet
//! file, which has the same bytes whoever computes it.
//!
//! A store is a folder (or whatever has files with names; [`Directory`] is a local one):
//!
//! ```text
//! sweep.json                the plan: who opens the store for another one is refused
//! runs/machine=epyc-9654/workload=container/threads=8/policy=per-cpu/seeds-1-64.parquet
//! failures/...              why a unit could not be computed, under its name
//! table.parquet             all runs, when none is missing: the same bytes for the same space
//! ```
//!
//! Nothing here starts threads, but [`run`], which uses all CPUs.

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

/// The library whose tables these are.
pub use arrow_array;
pub use campaign::{Campaign, Counts, Shard};
pub use error::Error;
pub use job::{Job, VERSION};
pub use plan::{CellSummary, DESCRIPTION, FAILURES, Merged, Plan, RUNS, TABLE, Unit};
pub use run::run;
pub use space::{Grid, Named, Seeds, Space, Until};
pub use store::Directory;
