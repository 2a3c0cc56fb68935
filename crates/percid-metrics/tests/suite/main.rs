//! The tests of this crate, in one program: linked once.

mod allocations;
mod http;
mod idle;
mod model;
mod open_metrics;
mod options;
mod page;
mod registry;
