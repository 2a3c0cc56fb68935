//! Real kernels in virtual machines.
//!
//! The harness boots stock Debian kernels under QEMU's software emulation, with the requested
//! number of CPUs and NUMA nodes, runs static test programs inside and judges the results. It needs
//! no privileges and no hardware virtualisation.
//!
//! One boot goes through these modules in turn:
//!
//! 1. [`pins`] names the package of a [`platform`]'s kernel, [`apt`] downloads it, [`kernel`]
//!    unpacks and keeps it; [`vmlinux`] takes the uncompressed image out of it,
//! 2. [`guest`] builds the programs for the guest, statically,
//! 3. [`initramfs`] packs them, with the list of jobs, into the root file
//!    system,
//! 4. [`qemu`] writes the command line for a [`shape::Shape`] and
//!    [`machine`] runs it under a deadline,
//! 5. [`protocol`] is the language between the guest's first process and the
//!    host, [`verdict`] decides what the answer means,
//! 6. [`report`] shows it.
//!
//! [`harness`] connects them. Two more binaries are for the guest: `percid-vm-init`, its first
//! process, and `percid-vm-fixtures`, programs that test the harness itself.
//!
//! The guiding rule: *a machine that does not answer has failed*. A panic, a
//! power-off, a reboot, a wrong number of CPUs, a missing line, an exit status
//! other than the agreed one: each is a failure with a name of its own.

#![forbid(unsafe_op_in_unsafe_fn)]

pub mod apt;
pub mod cache;
pub mod clock;
pub mod error;
pub mod guest;
#[cfg(feature = "host")]
pub mod harness;
#[cfg(feature = "host")]
pub mod initramfs;
pub mod kernel;
pub mod machine;
#[cfg(feature = "host")]
pub mod options;
pub mod pins;
pub mod plan;
pub mod platform;
pub mod power;
pub mod protocol;
pub mod qemu;
#[cfg(feature = "host")]
pub mod report;
pub mod shape;
pub mod tool;
pub mod verdict;
pub mod vmlinux;

pub use error::{Error, Result};
