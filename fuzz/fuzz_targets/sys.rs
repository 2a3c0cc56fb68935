//! The library's own file about sets of CPUs: it is private there.

/// The same as in the library.
pub(crate) const MAX_CPUS: usize = 8192;

#[path = "../../crates/percid/src/sys/cpuset.rs"]
#[allow(dead_code, reason = "the library uses all of it")]
pub(crate) mod cpuset;
