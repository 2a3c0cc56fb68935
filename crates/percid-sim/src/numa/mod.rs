//! The scan that keeps a process's memory near its threads, and the benchmark that was used to
//! evaluate it.
//!
//! At intervals, a thread scans its process's regions and arms pages, so that the next access to
//! each traps. The trap reveals the accessing thread and its node, and the page may migrate there.
//! `percid_rules::scan` decides which regions are armed, by the rules of a kernel. [`run`]
//! simulates the benchmark NUMA01_THREADLOCAL with it, or with any other scan, whose contract it
//! checks ([`scan_policy`]). [`paper()`] compares the outcome with the
//! published one, and [`hash`] studies the sets of active threads.

mod clock;
pub mod comparison;
pub mod contract;
pub mod experiment;
pub mod hash;
pub mod hash_search;
pub mod inputs;
pub mod left_out;
mod locality;
pub mod outcome;
mod pages;
pub mod paper;
pub mod parameters;
pub mod predictions;
pub mod run;
pub mod scan_policy;
pub mod setup;
pub mod system;
mod thread;
mod tiers;
mod weights;
pub mod workload;

pub use paper::{Paper, paper};
pub use predictions::predictions;
pub use setup::Setup;
pub use workload::Workload;
