//! The kernel's buffers, whichever way they are filled.

use std::os::fd::RawFd;

use super::stream::Stream;

/// The kernel's buffers.
pub(super) trait Buffers {
    /// Begins to record.
    fn begin(&mut self) -> Result<(), String>;

    /// Returns the descriptors to poll for buffers that should be emptied.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Takes what is there. Returns until when that is everything, but for what the kernel was just
    /// writing.
    fn drain(&mut self, stream: &mut Stream) -> Result<u64, String>;

    /// Ends the recording, takes the rest, and counts what was lost.
    fn end(&mut self, stream: &mut Stream) -> Result<(), String>;

    /// Returns what was requested and is not available.
    fn without(&self) -> Vec<&'static str>;
}
