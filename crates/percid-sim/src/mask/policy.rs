//! What a CPU does with its bit of the mask.

use serde::Serialize;

/// A time or a duration in clock cycles of the modelled machine.
pub type Cycles = u64;

/// What a CPU does with its bit.
///
/// Linux 3.11 and before, and 3.12 to 6.13, are the published change and what it replaced: a switch
/// between two threads of one address space, also by way of the idle task or a kernel thread, is a
/// branch of its own, and only that branch was given a test. The other branch sets the bit by a
/// locked instruction whatever it is, because it cleared it when it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskPolicy {
    /// Sets it by a locked instruction at every switch; clears it when it leaves for another
    /// address space. Linux up to 3.11.
    SetAlways,
    /// Within one address space sets it only if a test finds it clear; coming from another one sets
    /// it unconditionally, and clears that one's. Linux 3.12 to 6.13 (8f898fbbe5ee).
    TestFirst,
    /// The same with a test in both branches. No Linux does so: it shows that there the test would
    /// find the bit clear.
    TestEverywhere,
    /// Sets it only if a test finds it clear, in both branches, and leaves it set. Any flush makes
    /// CPUs that are elsewhere clear it. Linux commit 209954cbc7d0.
    LeaveLazily,
    /// The same, but they clear it at most once in
    /// [`Parameters::trim_interval_ms`](super::Parameters::trim_interval_ms). Linux from 6.14 on
    /// (6db2526c1d69).
    TrimRarely,
}

impl MaskPolicy {
    /// All of them, in the order of their invention.
    pub const ALL: [MaskPolicy; 5] = [
        MaskPolicy::SetAlways,
        MaskPolicy::TestFirst,
        MaskPolicy::TestEverywhere,
        MaskPolicy::LeaveLazily,
        MaskPolicy::TrimRarely,
    ];

    /// Its name, as in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MaskPolicy::SetAlways => "set-always",
            MaskPolicy::TestFirst => "test-first",
            MaskPolicy::TestEverywhere => "test-everywhere",
            MaskPolicy::LeaveLazily => "leave-lazily",
            MaskPolicy::TrimRarely => "trim-rarely",
        }
    }

    /// What it is, in a line.
    pub fn about(self) -> &'static str {
        match self {
            MaskPolicy::SetAlways => "sets the bit at every switch; Linux up to 3.11",
            MaskPolicy::TestFirst => {
                "tests first within an address space, sets across; Linux 3.12 to 6.13"
            }
            MaskPolicy::TestEverywhere => "tests first in both branches; no Linux",
            MaskPolicy::LeaveLazily => {
                "tests first in both branches and stays a member until a flush; Linux commit \
                 209954cbc7d0"
            }
            MaskPolicy::TrimRarely => {
                "the same, and flushes remove who is elsewhere once a second; Linux from 6.14"
            }
        }
    }

    /// Whether the bit is tested before it is set, when a thread of another address space ran
    /// before (`across`) or one of the same.
    pub(super) fn tests(self, across: bool) -> bool {
        match self {
            MaskPolicy::SetAlways => false,
            MaskPolicy::TestFirst => !across,
            MaskPolicy::TestEverywhere | MaskPolicy::LeaveLazily | MaskPolicy::TrimRarely => true,
        }
    }

    /// Whether a CPU clears its bit when it switches to another address space.
    pub(super) fn clears_on_leaving(self) -> bool {
        !matches!(self, MaskPolicy::LeaveLazily | MaskPolicy::TrimRarely)
    }
}
