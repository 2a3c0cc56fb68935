//! x
use crate::{Error, Trace};
pub(super) fn read(_bytes: &[u8]) -> Result<Trace, Error> {
    todo!()
}
