//! The first part on systems without critical sections.

use percid::Source;

use crate::failure::Finding;
use crate::plan::Plan;
use crate::report::Counts;
use crate::structure::Structure;

/// Does nothing: there are no instructions to interrupt. Returns that reason.
pub(crate) fn check(
    _: &dyn Structure,
    _: Source,
    _: Plan,
    _: &Counts,
) -> Result<Option<String>, Finding> {
    Ok(Some("this system has no critical sections".to_owned()))
}
