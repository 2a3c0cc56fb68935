#![doc = include_str!("../README.md")]
#![deny(rustdoc::broken_intra_doc_links)]

mod check;
mod disturbance;
mod failure;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod fork;
mod guarded;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
))]
mod instructions;
#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
)))]
#[path = "no_instructions.rs"]
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
