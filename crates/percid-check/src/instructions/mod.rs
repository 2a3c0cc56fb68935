//! The first part: an interruption at each instruction of the sections that operations reach.

mod campaign;
mod helper;
mod interruption;
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "riscv64", path = "riscv64.rs")]
mod processor;
mod section;
mod traps;

pub(crate) use campaign::check;
