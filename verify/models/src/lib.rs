//! Explicit-state models of concurrency-ID protocols (a running thread must always have its own
//! ID), and of percid's structures without locked instructions (data of another CPU must never be
//! missed, lost or used by two).
//!
//! - [`kernel`]: the kernel's slot protocol in its generations b (Linux 6.4), c (6.13) and d
//!   (6.14), step by step;
//! - [`rules`]: what these generations have in common, with everything else left open: what holds
//!   here holds for all three;
//! - [`modes`]: what replaced it in generation e (6.19), where IDs belong to threads or to CPUs;
//! - [`table`]: percid's own table from CPU to ID;
//! - [`mask`]: the active mask, whose bits are tested before they are set, with the barrier on the
//!   drainer's side;
//! - [`seizure`]: taking a block of an ID's memory away from the CPU that uses it;
//! - [`local`]: the lock of a value that one thread uses at a time, and how a visitor gets it;
//! - [`structure`]: what the last two share: threads with IDs, store buffers, visitors, a thief;
//! - [`memory`]: the store buffers of the last three;
//! - [`catalogue`]: the configurations that are explored, and the verdict that each of them must
//!   have;
//! - [`explore`]: the explorer.
//!
//! The explorer is ours, and the tests compare its counts with those of the crate `stateright`.
//! That crate would have been the first choice, but it cannot state the progress property ("from
//! every reachable state, work in flight can come to rest"), it tells states apart by 64-bit
//! fingerprints, and it reduces symmetry in depth-first order only, which gives up shortest traces.

pub mod catalogue;
pub mod explore;
pub mod kernel;
pub mod local;
pub mod mask;
pub mod memory;
pub mod modes;
pub mod rules;
pub mod seizure;
pub mod structure;
mod symmetry;
pub mod table;
