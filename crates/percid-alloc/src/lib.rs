#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(rustdoc::broken_intra_doc_links)]

mod cache;
mod per_cpu;
mod size_class;
mod statistics;
#[cfg(test)]
mod tests;

pub use per_cpu::PerCpu;
pub use size_class::MAX_SIZE;
pub use statistics::{ClassStatistics, Statistics};
