//! Stub for the memory of the intermittent benchmark, which is not measured on this system.

use std::io;

use percid_command::burst::AREA;

/// An empty type: there are no areas.
#[derive(Debug)]
pub(crate) enum Areas {}

impl Areas {
    pub(crate) fn map(_count: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn prefault(&mut self) {
        match *self {}
    }

    pub(crate) fn area(&mut self, _index: u32) -> Option<&mut [u8; AREA]> {
        match *self {}
    }
}
