//! Memory that follows its threads: balancers, regions, and their reports.

// The order of the header.
pub mod settings;

pub mod balancer;

pub mod region;

pub mod own_memory;

pub mod event;

pub mod report;

mod error;
mod maker;
