//! Reads what `perf record` writes, as it lies in memory.
//!
//! The container is read here rather than by a crate: `linux-perf-data` allocates what a header
//! claims, does not keep the order of compressed records and stops at the tracing data of a pipe;
//! `tracepoint_perf` reads paths only, and nothing that is compressed.

use crate::error::Error;
use crate::trace::Trace;

mod compressed;
mod container;
mod counting;
mod directory;
mod index;
mod layouts;
mod namespace;
mod origin;
mod reader;
mod sample;

use container::Container;

pub(super) use directory::read_directory;

/// Reads a `perf.data` file.
pub(super) fn read(bytes: &[u8]) -> Result<Trace, Error> {
    reader::trace(Container::read(bytes)?)
}
