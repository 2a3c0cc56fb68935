#![doc = include_str!("../README.md")]
#![deny(rustdoc::broken_intra_doc_links)]

mod check;
mod disturbance;
mod failure;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod fork;
mod guarded;
mod instructions;
mod plan;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod process;
mod random;
mod report;
mod stress;
mod structure;

pub use check::Check;
pub use failure::{Failure, Part};
pub use random::Random;
pub use report::{Report, SourceReport, Work};
pub use structure::Structure;
