//! The content of a file of either version: buffers, and how to read them.

use std::borrow::Cow;

use super::clock::Clock;
use super::options::Options;
use crate::error::Error;
use crate::event::Cpu;
use crate::formats::Formats;
use crate::read::bytes::Bytes;
use crate::sub_buffers::Layout;

/// All that was recorded.
pub(super) struct DatContent<'a> {
    pub(super) formats: Formats,
    pub(super) options: Options,
    /// The buffer of the whole system, and those of instances.
    pub(super) buffers: Vec<Buffer<'a>>,
}

/// The content of one buffer of the kernel.
pub(super) struct Buffer<'a> {
    /// The instance; empty for the whole system.
    pub(super) name: String,
    pub(super) layout: Layout,
    pub(super) clock: Clock,
    pub(super) cpus: Vec<(Cpu, Cow<'a, [u8]>)>,
}

/// Number of bytes that the data of the remaining CPUs may have. No two of them share any, so that
/// a file does not expand beyond its own length.
pub(super) struct Room(u64);

impl Room {
    pub(super) fn from_file(file: &[u8]) -> Room {
        Room(file.len() as u64)
    }

    /// Looks up the data of a CPU, whose offset and size come next; the size does not include a
    /// `prefix` of these bytes.
    pub(super) fn data<'a>(
        &mut self,
        file: Bytes<'a>,
        table: &mut Bytes<'_>,
        prefix: u64,
    ) -> Result<Bytes<'a>, Error> {
        const WHAT: &str = "the data of a CPU";
        let at = table.position();
        let (offset, size) = (table.u64(WHAT)?, table.u64(WHAT)?);
        let size = if size == 0 { 0 } else { size.saturating_add(prefix) };
        let found = part(file, offset, size).filter(|_| size <= self.0);
        let Some(found) = found else {
            let what = format!(
                "{WHAT}: {size} bytes at {offset} go beyond the end of the file, or belong to others too"
            );
            return Err(Error::at_byte(at, what));
        };
        self.0 -= size;
        Ok(found)
    }
}

/// These bytes of a file, if it has them.
pub(super) fn part(mut file: Bytes<'_>, offset: u64, size: u64) -> Option<Bytes<'_>> {
    file.take(offset, "the file").ok()?;
    file.part(size, "the file").ok()
}

/// The layout that a kernel describes.
pub(super) fn layout(header_page: &[u8], file: Bytes<'_>) -> Result<Layout, Error> {
    let text = String::from_utf8_lossy(header_page);
    Layout::read(&text, file.order())
        .map_err(|error| Error::in_file(format!("header_page: {error}")))
}
