//! Reports that other processes cannot ask for.

use std::io;

use super::unsupported;
use crate::report::Report;

/// There is no memfd to publish in.
#[derive(Debug)]
pub(crate) enum Publication {}

impl Publication {
    pub(crate) fn begin(_make: impl Fn() -> Report + Send + 'static) -> io::Result<Publication> {
        Err(unsupported())
    }
}
