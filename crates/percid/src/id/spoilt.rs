//! Spoiling the probe of the kernel, for percid's own proofs.

#[cfg(feature = "testing")]
use std::sync::atomic::AtomicU32;

/// How the proofs spoil a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[cfg_attr(
    not(feature = "testing"),
    expect(dead_code, unreachable_pub, reason = "only the proofs spoil anything")
)]
#[doc(hidden)]
pub enum Spoilt {
    /// Not at all.
    No,
    /// Every kernel is trusted without a probe.
    Skipped,
    /// No kernel is trusted without a probe.
    Always,
    /// As `Always`, and the kernel takes the section for none.
    WrongDescriptor,
}

/// What the proofs want.
#[cfg(feature = "testing")]
pub(crate) static SPOILT: AtomicU32 = AtomicU32::new(Spoilt::No as u32);
