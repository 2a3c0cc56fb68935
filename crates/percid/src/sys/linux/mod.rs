//! The system layer for 64-bit Linux: one file per kernel interface.

pub(crate) mod affinity;
#[cfg(all(test, not(any(miri, percid_portable))))]
pub(crate) mod child;
pub(crate) mod clock;
pub(crate) mod companion;
#[cfg(any(test, miri))]
pub(crate) mod described;
pub(crate) mod environment;
pub(crate) mod file;
pub(crate) mod holder;
#[cfg(not(miri))]
mod leak_detector;
pub(crate) mod membarrier;
#[cfg_attr(miri, path = "memory_in_miri.rs")]
pub(crate) mod memory;
pub(crate) mod process;
mod raw_call;
pub(crate) mod rseq;
pub(crate) mod signals;
#[cfg(not(miri))]
mod stays;
pub(crate) mod stderr;
pub(crate) mod topology;
