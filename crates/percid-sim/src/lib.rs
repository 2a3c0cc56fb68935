//! Simulator of policies that keep data near the CPU that uses it, on machines that need not be at
//! hand.
//!
//! The simulation is deterministic: the same inputs and the same seed give the same result, bit for
//! bit, on every machine. Times are whole nanoseconds ([`Ns`]). Random numbers come from a
//! generator with a specified sequence. Logarithms and exponential functions come from tables, or
//! from a library that does not use the platform's functions.

pub mod caches;
pub mod columns;
pub mod comparison;
pub mod conformance;
pub mod contract;
pub mod cost;
pub mod cpu_list;
pub mod cpu_set;
pub mod distances;
pub mod engine;
pub mod explanation;
mod exponentials;
pub mod file;
pub mod idle_history;
pub mod machine;
pub mod mask;
pub mod numa;
pub mod paper;
mod place;
pub mod policies;
pub mod published;
pub mod random;
pub mod results;
pub mod run_control;
pub mod time;
pub mod topology;
pub mod workload;

pub use time::{MS, Ns, SECOND, US};
