//! The section of a `perf.data` file that describes its tracepoints.

use super::bytes::Bytes;
use crate::error::Error;
use crate::formats::{ByteOrder, Formats};

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Reads the section.
///
/// Among the kernel's symbols is the function by which the timer tick is distinguished from other
/// timers. Today's `perf` writes no symbols, so its files tell of no ticks.
pub(super) fn read(mut data: Bytes<'_>) -> Result<Formats, Error> {
    if data.take(MAGIC.len() as u64, "the tracing data")? != MAGIC {
        return Err(data.error("the tracing data does not begin with its magic bytes"));
    }
    data.text("the version of the tracing data")?;
    let order = match data.u8("the byte order of the tracing data")? {
        0 => ByteOrder::Little,
        _ => ByteOrder::Big,
    };
    let mut data = Bytes::new(data.rest(), data.at(), order);
    let size_of_long = data.u8("the size of long")?;
    data.u32("the size of a page")?;
    for header in ["header_page", "header_event"] {
        let name = data.text("the name of a header")?;
        if name != header.as_bytes() {
            return Err(data.error(format!("{header} was expected")));
        }
        sized(&mut data, header)?;
    }
    for _ in 0..data.u32("the number of ftrace's own events")? {
        sized(&mut data, "an event of ftrace")?;
    }
    let mut formats = Formats::new(order, size_of_long != 4);
    systems(&mut data, &mut formats)?;
    if !data.is_empty() {
        let size = data.u32("the size of the kernel's symbols")?;
        formats.add_symbols(data.take(size.into(), "the kernel's symbols")?);
    }
    Ok(formats)
}

fn systems(data: &mut Bytes<'_>, formats: &mut Formats) -> Result<(), Error> {
    for _ in 0..data.u32("the number of systems")? {
        let system = String::from_utf8_lossy(data.text("the name of a system")?);
        for _ in 0..data.u32("the number of events of a system")? {
            let at = data.at();
            let description = sized(data, "the description of an event")?;
            let description = String::from_utf8_lossy(description);
            formats.add(&system, &description).map_err(|what| Error::at_byte(at, what))?;
        }
    }
    Ok(())
}

fn sized<'a>(data: &mut Bytes<'a>, what: &str) -> Result<&'a [u8], Error> {
    let size = data.u64(what)?;
    data.take(size, what)
}
