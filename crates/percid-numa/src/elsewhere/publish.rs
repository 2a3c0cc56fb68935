//! Reports for other processes, which this system does not support.

use std::io;

use super::unsupported;
use crate::report::Report;

/// The type of a publication, of which there are none: there is no memfd.
#[derive(Debug)]
pub(crate) enum Publication {}

impl Publication {
    pub(crate) fn begin(_make: impl Fn() -> Report + Send + 'static) -> io::Result<Publication> {
        Err(unsupported())
    }
}
