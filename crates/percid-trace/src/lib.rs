//! Scheduler traces.
#![doc = ""]

pub mod collector;
pub mod cpu_list;
pub mod error;
pub mod event;
pub mod replay;
pub mod texts;
pub mod trace;

pub use error::Error;
pub use trace::{Origin, Trace};
