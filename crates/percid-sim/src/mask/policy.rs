//! Policies for a CPU's bit in the mask.

use serde::Serialize;

/// A time or a duration in clock cycles of the modelled machine.
pub type Cycles = u64;

/// The handling of a CPU's bit.
///
/// Linux 3.11 and before, and 3.12 to 6.13, are the versions before and after the published change.
/// A switch between two threads of one address space, also through the idle task or a kernel
/// thread, has a branch of its own. Only that branch got a test. The other branch always sets the
/// bit by a locked instruction, because the CPU cleared it when it left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskPolicy {
    /// Sets the bit by a locked instruction at every switch, and clears it when the CPU leaves for
    /// another address space. Linux up to 3.11.
    SetAlways,
    /// Tests the bit first within one address space. On a switch from another one, sets the bit
    /// unconditionally and clears the bit there. Linux 3.12 to 6.13 (8f898fbbe5ee).
    TestFirst,
    /// Like `TestFirst`, with a test in both branches. No Linux does so: it shows that the test
    /// would find the bit clear there.
    TestEverywhere,
    /// Tests the bit first in both branches, and leaves it set. Any flush makes CPUs that run
    /// another process or none clear it. Linux commit 209954cbc7d0.
    LeaveLazily,
    /// Like `LeaveLazily`, but CPUs clear the bit at most once in
    /// [`Parameters::trim_interval_ms`](super::Parameters::trim_interval_ms). Linux from 6.14 on
    /// (6db2526c1d69).
    TrimRarely,
}

impl MaskPolicy {
    /// All policies, in the order of their invention.
    pub const ALL: [MaskPolicy; 5] = [
        MaskPolicy::SetAlways,
        MaskPolicy::TestFirst,
        MaskPolicy::TestEverywhere,
        MaskPolicy::LeaveLazily,
        MaskPolicy::TrimRarely,
    ];

    /// Returns the name, as in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MaskPolicy::SetAlways => "set-always",
            MaskPolicy::TestFirst => "test-first",
            MaskPolicy::TestEverywhere => "test-everywhere",
            MaskPolicy::LeaveLazily => "leave-lazily",
            MaskPolicy::TrimRarely => "trim-rarely",
        }
    }

    /// Returns a description in one line.
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

    /// Returns `true` if the bit is tested before it is set. `across` is `true` if the page tables
    /// of another address space are loaded.
    pub(super) fn tests(self, across: bool) -> bool {
        match self {
            MaskPolicy::SetAlways => false,
            MaskPolicy::TestFirst => !across,
            MaskPolicy::TestEverywhere | MaskPolicy::LeaveLazily | MaskPolicy::TrimRarely => true,
        }
    }

    /// Returns `true` if a CPU clears its bit when it switches to another address space.
    pub(super) fn clears_on_leaving(self) -> bool {
        !matches!(self, MaskPolicy::LeaveLazily | MaskPolicy::TrimRarely)
    }
}
