//! Balancing: the state that a balancer, its background thread and its regions share, and the scan
//! passes, arming and moves that change it.

pub(crate) mod arming;
mod background;
mod batches;
mod budget;
mod demotion;
mod describe;
mod fork_check;
mod log;
mod mapping;
mod periods;
mod rearming;
mod registration;
mod residency;
mod results;
mod scan_pass;
mod shared;
mod state;
mod timeline;

pub(crate) use background::Background;
pub(crate) use shared::Inner;
