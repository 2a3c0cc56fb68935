//! Systems that are not 64-bit Linux.
//!
//! Each system has a file for its own functions: memory, the number of a thread's CPU, the number
//! of the process. All other systems that Rust's standard library supports use `plain.rs`.

pub(crate) mod absent;
pub(crate) mod affinity;
pub(crate) mod clock;
pub(crate) mod environment;
pub(crate) mod holder;
#[cfg(test)]
mod memory_tests;
pub(crate) mod stderr;
#[cfg_attr(any(miri, percid_plain, not(any(unix, windows))), path = "plain.rs")]
#[cfg_attr(all(windows, not(percid_plain)), path = "windows.rs")]
#[cfg_attr(all(unix, not(any(miri, percid_plain))), path = "unix.rs")]
pub(crate) mod system;

pub(crate) use absent::{
    self as file, self as membarrier, self as process, self as rseq, self as topology,
};
pub(crate) use system as memory;
