//! Explicit-state models of concurrency-ID protocols: is the ID of a running thread its own,
//! whatever happens?
//!
//! - [`kernel`]: the kernel's slot protocol in its generations b (Linux 6.4), c (6.13) and d
//!   (6.14), step by step;
//! - [`rules`]: what these generations have in common, with everything else left open: what holds
//!   here holds for all three;
//! - [`table`]: percid's own table from CPU to ID;
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
pub mod rules;
mod symmetry;
pub mod table;
