//! The size of a check.

/// The size and seed of a check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) rounds: u64,
    pub(crate) threads: usize,
}
