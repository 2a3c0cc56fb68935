//! The first part: an interruption at each instruction of the sections that operations reach.

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
)))]
#[path = "absent.rs"]
mod campaign;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
))]
mod campaign;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
))]
mod helper;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
))]
mod interruption;
mod outcome;
#[cfg(all(
    target_os = "linux",
    target_arch = "x86_64",
    target_pointer_width = "64",
    not(any(percid_elsewhere, percid_portable))
))]
#[path = "x86_64.rs"]
mod processor;
#[cfg(all(
    target_os = "linux",
    target_arch = "aarch64",
    target_pointer_width = "64",
    not(any(percid_elsewhere, percid_portable))
))]
#[path = "aarch64.rs"]
mod processor;
#[cfg(all(
    target_os = "linux",
    target_arch = "riscv64",
    not(any(percid_elsewhere, percid_portable))
))]
#[path = "riscv64.rs"]
mod processor;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
))]
mod section;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
    not(any(percid_elsewhere, percid_portable))
))]
mod traps;

pub(crate) use campaign::check;
pub(crate) use outcome::Instructions;
