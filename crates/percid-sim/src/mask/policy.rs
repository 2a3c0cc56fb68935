//! Policies for a CPU's bit in the mask.

use serde::Serialize;

/// A time or a duration in clock cycles of the modelled machine.
pub type Cycles = u64;

/// The handling of the CPU's bit in the mask of the address space that it switches to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Sets the bit by a locked instruction.
    Set,
    /// Reads the bit, and sets it if it is clear.
    Test,
    /// Leaves the bit as it is, without an access to the mask.
    Keep,
}

/// A policy for a CPU's bit in the masks of address spaces: the decisions that
/// [`simulate`](super::simulate) makes by it. Those of Linux are in [`MaskPolicy`].
///
/// # Contract
///
/// The simulation ends with a [`MaskViolation`](super::MaskViolation) if a policy breaks this: a
/// CPU that runs a thread of an address space has its bit set in the mask of the address space.
/// Otherwise, a flush would skip the CPU, which would use translations that are no longer valid.
///
/// # Examples
///
/// This policy breaks its contract, because a flush clears the bits of CPUs that idle:
///
/// ```
/// use std::sync::atomic::AtomicBool;
///
/// use percid_sim::mask::{BitPolicy, Join, Parameters, simulate};
///
/// struct SetsAcrossOnly;
///
/// impl BitPolicy for SetsAcrossOnly {
///     fn name(&self) -> &str {
///         "sets-across-only"
///     }
///     fn join(&self, across: bool) -> Join {
///         if across { Join::Set } else { Join::Keep }
///     }
///     fn clears_on_leaving(&self) -> bool {
///         true
///     }
/// }
///
/// let parameters = Parameters { turns_per_cpu: 20, ..Parameters::default() };
/// let broken = simulate(&parameters, &SetsAcrossOnly, 1, &AtomicBool::new(false));
/// let violation = broken.expect_err("a CPU without its bit").to_string();
/// assert!(violation.contains("and its bit is clear, after a switch"), "{violation}");
/// ```
pub trait BitPolicy: Sync {
    /// Returns the name, for tables and errors.
    fn name(&self) -> &str;

    /// Returns the handling of the bit at a switch. `across` is `true` if the page tables of
    /// another address space are loaded.
    fn join(&self, across: bool) -> Join;

    /// Returns `true` if a CPU clears its bit in the mask of the address space that it leaves for
    /// another one.
    fn clears_on_leaving(&self) -> bool;

    /// Returns `true` if a flush requires the members that do not run the address space to clear
    /// their bits. `elapsed` is the time since the last such flush of this mask; `interval` is that
    /// of [`Parameters::trim_interval_ms`](super::Parameters::trim_interval_ms).
    fn trims(&self, _elapsed: Option<Cycles>, _interval: Cycles) -> bool {
        true
    }

    /// Returns `true` if a CPU clears its bit when such a flush interrupts it. `runs` is `true` if
    /// it runs a thread of the address space again, or switches to one.
    fn clears_on_interrupt(&self, runs: bool) -> bool {
        !runs
    }
}

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
}

impl BitPolicy for MaskPolicy {
    fn name(&self) -> &str {
        MaskPolicy::name(*self)
    }

    fn join(&self, across: bool) -> Join {
        match self {
            MaskPolicy::SetAlways => Join::Set,
            MaskPolicy::TestFirst if across => Join::Set,
            MaskPolicy::TestFirst
            | MaskPolicy::TestEverywhere
            | MaskPolicy::LeaveLazily
            | MaskPolicy::TrimRarely => Join::Test,
        }
    }

    fn clears_on_leaving(&self) -> bool {
        !matches!(self, MaskPolicy::LeaveLazily | MaskPolicy::TrimRarely)
    }

    fn trims(&self, elapsed: Option<Cycles>, interval: Cycles) -> bool {
        match (self, elapsed) {
            (MaskPolicy::TrimRarely, Some(elapsed)) => elapsed >= interval,
            _ => true,
        }
    }
}
