//! The header of `trace-cmd`'s files, which is also a section of `perf.data`: the kernel's layout
//! of its sub-buffers and its tracepoints.

use super::bytes::Bytes;
use crate::error::Error;
use crate::formats::{ByteOrder, Formats};

/// The magic bytes at its beginning.
pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The first fields of the header.
pub(super) struct Beginning<'a> {
    pub(super) version: &'a [u8],
    pub(super) order: ByteOrder,
    pub(super) long_is_64_bits: bool,
    /// The data after these fields.
    pub(super) rest: Bytes<'a>,
}

impl<'a> Beginning<'a> {
    pub(super) fn take(mut data: Bytes<'a>) -> Result<Beginning<'a>, Error> {
        if data.take(MAGIC.len() as u64, "the tracing data")? != MAGIC {
            return Err(data.error("the tracing data does not begin with its magic bytes"));
        }
        let version = data.text("the version of the tracing data")?;
        let order = match data.u8("the byte order of the tracing data")? {
            0 => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let mut rest = Bytes::new(data.rest(), data.position(), order);
        let long_is_64_bits = rest.u8("the size of long")? != 4;
        rest.u32("the size of a page")?;
        Ok(Beginning { version, order, long_is_64_bits, rest })
    }

    /// No formats yet, for the records of this machine.
    pub(super) fn formats(&self) -> Formats {
        Formats::new(self.order, self.long_is_64_bits).of_any_kernel()
    }
}

/// Reads all of the section of a `perf.data` file.
///
/// Among the kernel's symbols is the function by which the timer tick is distinguished from other
/// timers. Today's `perf` writes no symbols, so its files contain no ticks.
pub(super) fn read(data: Bytes<'_>) -> Result<Formats, Error> {
    let beginning = Beginning::take(data)?;
    let (mut formats, mut data) = (beginning.formats(), beginning.rest);
    header_page(&mut data)?;
    events_of_ftrace(&mut data)?;
    systems(&mut data, &mut formats)?;
    if !data.is_empty() {
        symbols(&mut data, &mut formats)?;
    }
    Ok(formats)
}

/// Takes how a sub-buffer is laid out, and leaves out how a record begins.
pub(super) fn header_page<'a>(data: &mut Bytes<'a>) -> Result<&'a [u8], Error> {
    let mut texts = [&b""[..]; 2];
    for (header, text) in ["header_page", "header_event"].iter().zip(&mut texts) {
        let name = data.text("the name of a header")?;
        if name != header.as_bytes() {
            return Err(data.error(format!("{header} was expected")));
        }
        *text = sized(data, header)?;
    }
    Ok(texts[0])
}

/// Leaves out the descriptions of ftrace's own events, which no trace needs.
pub(super) fn events_of_ftrace(data: &mut Bytes<'_>) -> Result<(), Error> {
    for _ in 0..data.u32("the number of ftrace's own events")? {
        sized(data, "an event of ftrace")?;
    }
    Ok(())
}

/// Takes the descriptions of all events.
pub(super) fn systems(data: &mut Bytes<'_>, formats: &mut Formats) -> Result<(), Error> {
    for _ in 0..data.u32("the number of systems")? {
        let system = String::from_utf8_lossy(data.text("the name of a system")?);
        for _ in 0..data.u32("the number of events of a system")? {
            let description = sized(data, "the description of an event")?;
            formats.add_or_leave_out(&system, &String::from_utf8_lossy(description));
        }
    }
    Ok(())
}

/// Takes the kernel's symbols.
pub(super) fn symbols(data: &mut Bytes<'_>, formats: &mut Formats) -> Result<(), Error> {
    let size = data.u32("the size of the kernel's symbols")?;
    formats.add_symbols(data.take(size.into(), "the kernel's symbols")?);
    Ok(())
}

/// Takes a text that follows its size.
pub(super) fn sized<'a>(data: &mut Bytes<'a>, what: &str) -> Result<&'a [u8], Error> {
    let size = data.u64(what)?;
    data.take(size, what)
}
