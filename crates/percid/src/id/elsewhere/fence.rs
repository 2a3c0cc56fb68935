//! A stub of the fence for platforms without one. Only critical sections need it; the protocols
//! that claim something from CPUs work differently without critical sections.

use crate::id::source_error::SourceError;
#[cfg(test)]
use crate::sys::steps::{self, Fence, Step};

/// Skips all fences; there are none.
#[cfg(feature = "testing")]
pub(crate) static SKIP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

pub(crate) fn prepare() -> Result<(), SourceError> {
    Err(SourceError::UnsupportedPlatform)
}

pub(crate) fn is_available() -> bool {
    false
}

/// The counterpart of the fence, which does not exist here.
#[inline(always)]
pub(crate) fn light() {}

pub(crate) fn all() -> Result<(), i32> {
    #[cfg(test)]
    if let Some(answer) = steps::at(Step::Membarrier(Fence::OfAll)) {
        return answer;
    }
    Err(0)
}

pub(crate) fn cpu(_: u32) -> Result<(), i32> {
    Err(0)
}
