//! Policies for concurrency IDs in WebAssembly modules.
//!
//! A module exports the functions in [`EXPORTS`], of which only `percid_id` is required, and may
//! import those in [`IMPORTS`] from `percid`. Each simulated process has an instance of its own;
//! that of an ended process is reset and used again. Modules have no access to anything else, so
//! their results are the same on every machine.
//!
//! The interpreter counts the instructions of each call and ends a call after [`FUEL`] units. A
//! call that traps or does not end is a [`Violation`](percid_sim::contract::Violation).

mod exposed;
mod host;
mod instance;
mod interface;
mod module;
mod shelf;
mod snapshot;

pub use instance::FUEL;
pub use interface::{EXPORTS, Function, IMPORTS, Kind};
pub use module::{LoadError, load, sha256};
