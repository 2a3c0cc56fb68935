//! Simulated time.

/// A time or a duration, in nanoseconds of simulated time.
pub type Ns = u64;

/// A microsecond.
pub const US: Ns = 1_000;
/// A millisecond.
pub const MS: Ns = 1_000_000;
/// A second.
pub const SECOND: Ns = 1_000_000_000;
