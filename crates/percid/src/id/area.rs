//! Where the rseq area of every thread is.

use crate::critical::FAST_PATH;
use crate::sys::registration::Registration;
use crate::sys::rseq;

/// Who registers threads. Critical sections find the area afterwards.
pub(crate) fn find() -> Registration {
    let registration = rseq::registration();
    FAST_PATH.set_area(rseq::area_offset(registration));
    registration
}
