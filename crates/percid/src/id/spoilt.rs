//! Overrides of the kernel probe, for percid's own proofs.

#[cfg(feature = "testing")]
use std::sync::atomic::AtomicU32;

/// The way in which the proofs override a probe.
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
    /// Like `Always`; in addition the kernel does not recognise the section.
    WrongDescriptor,
}

/// The override that the proofs request.
#[cfg(feature = "testing")]
pub(crate) static SPOILT: AtomicU32 = AtomicU32::new(Spoilt::No as u32);
