#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(rustdoc::broken_intra_doc_links)]

mod block;
mod cache;
#[cfg_attr(
    not(all(
        feature = "checked",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
        not(miri)
    )),
    path = "no_mark.rs"
)]
mod mark;
mod per_cpu;
mod size_class;
mod statistics;
#[cfg(test)]
mod tests;

pub use per_cpu::PerCpu;
pub use size_class::MAX_SIZE;
pub use statistics::{ClassStatistics, Statistics};
