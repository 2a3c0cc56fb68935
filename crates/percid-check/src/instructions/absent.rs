//! The first part on systems without critical sections.

use percid::Source;

use super::outcome::Instructions;
use crate::failure::Finding;
use crate::plan::Plan;
use crate::report::Counts;
use crate::structure::Structure;

/// Does nothing: there are no instructions to interrupt.
pub(crate) fn check(
    _: &dyn Structure,
    _: Source,
    _: Plan,
    _: &Counts,
) -> Result<Instructions, Finding> {
    Ok(Instructions::Not("this system has no critical sections".to_owned()))
}
