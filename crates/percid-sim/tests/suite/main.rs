//! The tests of this crate in one program, so that it is linked once.

mod conformance;
mod contract;
mod cross_validation;
mod engine;
mod files;
mod inheritance;
mod masks;
mod outcomes;
mod programs;
mod quota;
mod scans;
mod semantics;
mod wandering;
