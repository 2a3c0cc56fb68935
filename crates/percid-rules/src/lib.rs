//! The decisions of percid as pure state machines, without system calls, clocks or atomic
//! operations.
//!
//! * [`space`]: which CPU gets which concurrency ID.
//! * [`assign`]: the order of evictions and steals when a CPU gets an ID.
//! * [`scan`]: which memory a NUMA scan visits, how often, and which pages move.
//! * [`Generation`]: the way a kernel assigns its own IDs, by its release.
//!
//! The library drives them with real CPUs, the simulator with modelled ones, and the trace replay
//! with recorded ones. So the code that is compared with recordings of real kernels is the code
//! that ships.
//!
//! All types are plain data: `Send` and `Sync`, without locks, and independent of the operating
//! system.

#![no_std]
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod assign;
mod generation;
pub mod scan;
pub mod space;

pub use generation::Generation;
