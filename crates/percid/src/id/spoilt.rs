//! Overrides of the kernel probe, for percid's own proofs.

#[cfg(any(test, feature = "testing"))]
use std::sync::atomic::AtomicU32;

/// The way in which the proofs override a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[cfg_attr(
    not(any(test, feature = "testing")),
    expect(dead_code, reason = "only the proofs and tests spoil anything")
)]
#[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "the proofs see it"))]
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
#[cfg(any(test, feature = "testing"))]
pub(crate) static SPOILT: AtomicU32 = AtomicU32::new(Spoilt::No as u32);
