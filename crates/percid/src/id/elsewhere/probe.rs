//! A stub of the kernel probe, for platforms without critical sections.

use std::time::Duration;

use crate::id::aborts::ProbeReport;
use crate::id::source_error::SourceError;

pub(crate) fn sections_can_be_trusted() -> Result<(), SourceError> {
    Err(SourceError::UnsupportedPlatform)
}

pub(crate) fn run(_limit: Duration, _brief: bool) -> Result<ProbeReport, SourceError> {
    Err(SourceError::UnsupportedPlatform)
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
