//! The decisions of percid as pure state machines, without a system call, a clock or an atomic
//! operation.
//!
//! * [`space`]: which CPU gets which concurrency ID.
//! * [`scan`]: which memory a NUMA scan visits, how often, and which pages move.
//! * [`Generation`]: how a kernel hands out its own IDs, by its release.
//!
//! The library drives them with real CPUs, the simulator with modelled ones, and the trace replay
//! with recorded ones. So what is compared with recordings of real kernels is the code that ships.
//!
//! Everything here is plain data: `Send` and `Sync`, without locks, and fit for any operating
//! system.

#![no_std]
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod generation;
pub mod scan;
pub mod space;

pub use generation::Generation;
