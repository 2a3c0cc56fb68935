//! Reads files of `trace-cmd record` from memory.
//!
//! A file begins like the tracing data of `perf.data`. In version 6 everything follows in a fixed
//! order. In version 7 it is in sections, which a list of options names, and which may be
//! compressed. Both have the kernel's sub-buffers, CPU by CPU, of the whole system and of
//! instances.
//!
//! The formats are described in trace-cmd's manual: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

mod buffer;
mod clock;
mod compression;
mod merge;
mod options;
mod version_6;
mod version_7;

use super::bytes::Bytes;
use super::ftrace_text;
use super::tracing_data::{self, Beginning};
use crate::error::Error;
use crate::formats::ByteOrder;
use crate::trace::Trace;

/// The beginning of such a file.
pub(super) const MAGIC: &[u8] = tracing_data::MAGIC;

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<Trace, Error> {
    let beginning = Beginning::take(Bytes::new(bytes, 0, ByteOrder::Little))?;
    let recording = match beginning.version {
        b"6" => match version_6::read(bytes, beginning)? {
            version_6::Content::Recording(recording) => *recording,
            version_6::Content::Text(text) => return ftrace_text::read(text),
        },
        b"7" => version_7::read(bytes, beginning)?,
        other => {
            let version = String::from_utf8_lossy(other);
            let what = format!("version {version:.8} of trace-cmd's files: expected 6 or 7");
            return Err(Error::at_byte(MAGIC.len() as u64, what));
        }
    };
    merge::trace(recording)
}
