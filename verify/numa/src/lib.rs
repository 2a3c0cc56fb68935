//! One script, two walks: the library's and the simulator's, which were written independently of each other
//! (and the simulator's is compared with that of a running kernel, in `verify/vm`). A script of random events
//! drives both; [`compare`] finds the first decision in which they differ.

pub mod compare;
pub mod script;
