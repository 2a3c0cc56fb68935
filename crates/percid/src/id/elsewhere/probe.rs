//! A stub of the kernel probe, for platforms without critical sections.

use std::time::Duration;

use crate::id::aborts::Probe;
use crate::id::unavailable::Unavailable;

pub(crate) fn sections_can_be_trusted() -> Result<(), Unavailable> {
    Err(Unavailable::UnsupportedPlatform)
}

pub(crate) fn run(_limit: Duration, _brief: bool) -> Result<Probe, Unavailable> {
    Err(Unavailable::UnsupportedPlatform)
}

pub(crate) fn is_resting() -> bool {
    false
}

pub(crate) fn is_unanswered() -> bool {
    false
}

pub(crate) fn reap_left() -> bool {
    true
}
