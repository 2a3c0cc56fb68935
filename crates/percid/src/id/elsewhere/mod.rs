//! Where the system is not 64-bit Linux: no IDs, no fence, nothing to probe.

pub(crate) mod absent;
pub(crate) mod fence;
pub(crate) mod probe;

pub(crate) use absent::{self as area, self as kernel, self as table};
