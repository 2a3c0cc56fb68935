//! The fence of the protocols that take something away from CPUs, where there is none: only
//! critical sections need it, and the protocols have another way without them.

use crate::id::unavailable::Unavailable;
#[cfg(test)]
use crate::sys::steps::{self, Fence, Step};

/// Skips all fences, of which there are none.
#[cfg(feature = "testing")]
pub(crate) static SKIP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

pub(crate) fn prepare() -> Result<(), Unavailable> {
    Err(Unavailable::OtherSystem)
}

pub(crate) fn is_available() -> bool {
    false
}

/// The other side of a fence that there is not.
#[inline(always)]
pub(crate) fn light() {}

pub(crate) fn all() -> Result<(), Unavailable> {
    #[cfg(test)]
    if let Some(answer) = steps::at(Step::Membarrier(Fence::OfAll)) {
        return answer.map_err(|_| Unavailable::OtherSystem);
    }
    Err(Unavailable::OtherSystem)
}
