//! Memory that follows its threads: balancers, regions, and what there is to say about them.

// The header's order.
pub mod settings;

pub mod balancer;

pub mod region;

pub mod own_memory;

pub mod event;

pub mod report;

mod error;
mod maker;
