//! Explicit-state models of concurrency-ID protocols (a running thread must always have its own
//! ID), and of percid's structures without locked instructions (data of another CPU must never be
//! missed, lost or used by two).
//!
//! - [`kernel`]: the kernel's slot protocol in its generations b (Linux 6.4), c (6.13) and d
//!   (6.14), step by step;
//! - [`rules`]: the common part of these generations, with everything else left open: its
//!   properties hold for all three;
//! - [`modes`]: its replacement in generation e (6.19), in which IDs belong to threads or to CPUs;
//! - [`table`]: percid's own table from CPU to ID;
//! - [`mask`]: the active mask, whose bits are tested before they are set, with the barrier on the
//!   drainer's side;
//! - [`seizure`]: taking a block of an ID's memory from the CPU that uses it;
//! - [`local`]: the lock of a value that one thread uses at a time, and a visitor's access to it;
//! - [`structure`]: the common part of the last two: threads with IDs, store buffers, visitors, a
//!   thief;
//! - [`sync_lock`], [`sync_grace`]: the readers-writer lock and the grace periods of `percid-sync`;
//!   [`sync_words`]: the words of their readers; [`sync_count`], [`sync_budget`]: its reference counts
//!   and limits;
//! - [`memory`]: the store buffers of the last three;
//! - [`catalogue`]: the configurations that are explored, and the verdict that each of them must
//!   have;
//! - [`explore`]: the explorer.
//!
//! The tests compare the explorer's counts with those of the crate `stateright`. That crate was the
//! first choice, but it cannot express the progress property ("from every reachable state, work in
//! flight can come to rest"). It also distinguishes states by 64-bit fingerprints, and it reduces
//! symmetry in depth-first order only, which does not yield shortest traces.

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
pub mod sync_budget;
pub mod sync_count;
pub mod sync_grace;
pub mod sync_lock;
pub mod sync_words;
pub mod table;
