//! The location of each thread's rseq area.

use crate::critical::FAST_PATH;
use crate::sys::registration::Registration;
use crate::sys::rseq;

/// Returns how threads are registered, and sets the location of the area for critical sections.
pub(crate) fn find() -> Registration {
    let registration = rseq::registration();
    FAST_PATH.set_area(rseq::area_offset(registration));
    registration
}
