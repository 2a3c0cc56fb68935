//! What a CPU does with its bit of the mask.

use serde::Serialize;

/// A time or a duration in clock cycles of the modelled machine.
pub type Cycles = u64;

/// What a CPU does with its bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskPolicy {
    /// Sets it by a locked instruction at every switch to the process; clears it when it leaves for
    /// another process. Linux up to 3.11.
    SetAlways,
    /// Sets it only if a test finds it clear; clears it when it leaves for another process. Linux
    /// from 3.12.
    TestFirst,
    /// Sets it only if a test finds it clear, and leaves it set. A flush makes absent CPUs clear
    /// their bits, at most once in
    /// [`Parameters::trim_interval_ns`](super::Parameters::trim_interval_ns). Linux from 6.14
    /// (209954cbc7d0, 6db2526c1d69).
    LeaveLazily,
}

impl MaskPolicy {
    /// All of them, in the order of their invention.
    pub const ALL: [MaskPolicy; 3] =
        [MaskPolicy::SetAlways, MaskPolicy::TestFirst, MaskPolicy::LeaveLazily];
}
