//! The parts of a `perf.data` file: its header, sections and records; and of what `perf record -o
//! -` writes into a pipe, where the same things come as records.

use std::borrow::Cow;

use tracepoint_decode::{PerfEventAttrSize, PerfEventHeaderType as Type};

use super::compressed::Decompression;
use super::sample::Attributes;
use crate::error::Error;
use crate::formats::ByteOrder;
use crate::read::bytes::Bytes;

/// Sections of a file, by their numbers.
pub(super) mod feature {
    pub(in super::super) const TRACING_DATA: u32 = 1;
    pub(in super::super) const OS_RELEASE: u32 = 4;
    pub(in super::super) const NR_CPUS: u32 = 7;
    pub(in super::super) const CMDLINE: u32 = 11;
    pub(in super::super) const EVENT_DESC: u32 = 12;
}

/// The size of a pipe's header, which distinguishes it from a file.
const PIPE_HEADER: u64 = 16;

/// `PERF_RECORD_COMPRESSED2`, since Linux 6.16.
const COMPRESSED2: Type = Type(83);

/// A `perf.data` file in its parts.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub(super) order: ByteOrder,
    pub(super) events: Vec<Event>,
    features: Vec<(u32, Bytes<'a>)>,
    pub(super) records: Records<'a>,
    /// Bytes of text that stood among the records.
    pub(super) text: u64,
}

/// An event that was requested.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) attributes: Attributes,
    /// The numbers by which records refer to it.
    pub(super) ids: Vec<u64>,
}

/// All records, decompressed if necessary.
#[derive(Debug)]
pub(super) struct Records<'a> {
    bytes: Cow<'a, [u8]>,
    /// Offset in the file at which they begin; 0 if they were decompressed, so that errors count
    /// from the first of them.
    at: u64,
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) kind: Type,
    pub(super) misc: u16,
    pub(super) body: Bytes<'a>,
    /// The data that follows the record and does not count as part of it.
    appendix: Bytes<'a>,
}

impl<'a> Container<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Container<'a>, Error> {
        let order = match bytes.first() {
            Some(b'P') => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let mut header = Bytes::new(bytes, 0, order);
        header.take(8, "the magic bytes")?;
        match header.u64("the size of the header")? {
            PIPE_HEADER => Container::read_pipe(header),
            _ => Container::read_file(bytes, header),
        }
    }

    /// The section with this number.
    pub(super) fn feature(&self, number: u32) -> Option<Bytes<'a>> {
        self.features.iter().find(|&&(known, _)| known == number).map(|&(_, data)| data)
    }

    fn read_file(bytes: &'a [u8], mut header: Bytes<'a>) -> Result<Container<'a>, Error> {
        let file = Bytes::new(bytes, 0, header.order());
        let attr_size = header.u64("the size of an event's attributes")?;
        let attrs = section(&file, &mut header, "the events")?;
        let data = section(&file, &mut header, "the records")?;
        if data.is_empty() {
            return Err(
                data.error("there are no records: the recording was not brought to its end")
            );
        }
        section(&file, &mut header, "the types of events")?;
        let mut table = file;
        table.take(data.position() + data.rest().len() as u64, "the table of sections")?;
        let mut features = Vec::new();
        for word in 0..4 {
            let bits = header.u64("the list of sections")?;
            for bit in (0..64).filter(|bit| bits >> bit & 1 != 0) {
                features.push((word * 64 + bit, section(&file, &mut table, "a section")?));
            }
        }
        let events = events(&file, attrs, attr_size)?;
        let records = Records { bytes: data.rest().into(), at: data.position() };
        let records = records.decompressed(file.order())?;
        Ok(Container { order: file.order(), events, features, records, text: 0 })
    }

    fn read_pipe(stream: Bytes<'a>) -> Result<Container<'a>, Error> {
        let order = stream.order();
        let (mut events, mut features) = (Vec::new(), Vec::new());
        let (mut rest, mut text, mut without_text) = (stream, 0, Vec::new());
        let mut copied = stream.position();
        while !rest.is_empty() {
            let words = words_of_others(rest.rest());
            if words > 0 {
                let before = (rest.position() - copied) as usize;
                let from = (copied - stream.position()) as usize;
                without_text.extend_from_slice(&stream.rest()[from..from + before]);
                rest.take(words, "text")?;
                text += words;
                copied = rest.position();
                continue;
            }
            let Record { kind, mut body, appendix, .. } = Record::take(&mut rest)?;
            match kind {
                Type::HeaderAttr => events.push(event(body)?),
                Type::HeaderFeature => {
                    let number = body.u64("the number of a section")?;
                    features.push((u32::try_from(number).unwrap_or(u32::MAX), body));
                }
                Type::HeaderTracingData => features.push((feature::TRACING_DATA, appendix)),
                _ => {}
            }
        }
        let records = match text {
            0 => Records { bytes: stream.rest().into(), at: stream.position() },
            _ => {
                let from = (copied - stream.position()) as usize;
                without_text.extend_from_slice(&stream.rest()[from..]);
                Records { bytes: without_text.into(), at: 0 }
            }
        };
        Ok(Container { order, events, features, records: records.decompressed(order)?, text })
    }
}

/// Returns the length of the lines of text at the beginning of some bytes. perf writes to standard
/// error, and the recorded command writes too, perhaps into the same pipe. No type of a record
/// consists of four letters.
fn words_of_others(bytes: &[u8]) -> u64 {
    const LONGEST_LINE: usize = 1 << 14;
    let is_letter = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | b' '..=b'~' | 0x80..);
    let mut rest = bytes;
    while !rest.is_empty() && rest.iter().take(4).all(is_letter) {
        let line = &rest[..rest.len().min(LONGEST_LINE)];
        // The first byte may be the end of an empty line.
        let end = line.iter().position(|&byte| byte == b'\n').map_or(line.len(), |end| end + 1);
        if !line[..end].iter().all(is_letter) {
            break;
        }
        rest = &rest[end..];
    }
    (bytes.len() - rest.len()) as u64
}

/// Takes the offset and size of a section from a header and looks it up.
fn section<'a>(file: &Bytes<'a>, header: &mut Bytes<'a>, what: &str) -> Result<Bytes<'a>, Error> {
    let at = header.position();
    let offset = header.u64(what)?;
    let size = header.u64(what)?;
    let mut file = *file;
    let found = file.take(offset, what).and_then(|_| file.part(size, what));
    found.map_err(|_| {
        let message = format!("{what}: {size} bytes at {offset} go beyond the end of the file");
        Error::at_byte(at, message)
    })
}

/// Reads the events of a file: for each its attributes, and where its numbers are.
fn events(file: &Bytes<'_>, mut attrs: Bytes<'_>, size: u64) -> Result<Vec<Event>, Error> {
    const SECTION: u64 = 16;
    if size < u64::from(PerfEventAttrSize::Ver0.0) + SECTION {
        return Err(attrs.error(format!("{size} bytes are too few for an event")));
    }
    let mut events = Vec::new();
    // The lists of numbers do not overlap, so that all of them together fit into the file.
    let mut room = file.rest().len();
    while !attrs.is_empty() {
        let at = attrs.position();
        let mut entry = attrs.part(size, "an event")?;
        let attributes = Attributes::read(entry.part(size - SECTION, "an event")?)?;
        let ids = section(file, &mut entry, "the numbers of an event")?;
        room = room.checked_sub(ids.rest().len()).ok_or_else(|| {
            Error::at_byte(at, "the events have more numbers than there is room for")
        })?;
        events.push(Event { attributes, ids: numbers(ids)? });
    }
    Ok(events)
}

/// Reads an event from a pipe: its attributes, which contain their own length, and its numbers.
fn event(body: Bytes<'_>) -> Result<Event, Error> {
    let mut size = body;
    size.u32("the attributes of an event")?;
    let size = size.u32("the size of an event's attributes")?;
    let mut ids = body;
    let attributes = Attributes::read(ids.part(size.into(), "the attributes of an event")?)?;
    Ok(Event { attributes, ids: numbers(ids)? })
}

fn numbers(mut list: Bytes<'_>) -> Result<Vec<u64>, Error> {
    let mut numbers = Vec::with_capacity(list.rest().len() / 8);
    while !list.is_empty() {
        numbers.push(list.u64("the number of an event")?);
    }
    Ok(numbers)
}

impl<'a> Records<'a> {
    /// Appends the records of another file, which has nothing else.
    pub(super) fn append(&mut self, file: &[u8], order: ByteOrder) -> Result<(), Error> {
        let more = Records { bytes: file.into(), at: 0 }.decompressed(order)?;
        self.bytes.to_mut().extend_from_slice(&more.bytes);
        Ok(())
    }

    /// All records, one after the other.
    pub(super) fn all(&self, order: ByteOrder) -> Bytes<'_> {
        Bytes::new(&self.bytes, self.at, order)
    }

    /// The record that begins at this byte.
    pub(super) fn get(&self, at: u64, order: ByteOrder) -> Result<Record<'_>, Error> {
        let mut bytes = self.all(order);
        bytes.take(at - self.at, "records")?;
        Record::take(&mut bytes)
    }

    /// Returns the records. Those with compressed data are replaced by its content, at the end.
    fn decompressed(self, order: ByteOrder) -> Result<Records<'a>, Error> {
        let mut rest = self.all(order);
        while !rest.is_empty() {
            let kind = Record::take(&mut rest)?.kind;
            if kind == Type::Compressed || kind == COMPRESSED2 {
                let plain = plain(self.all(order))?;
                return Ok(Records { bytes: plain.into(), at: 0 });
            }
        }
        Ok(self)
    }
}

/// Returns the records that are not compressed, followed by those that are.
fn plain(mut records: Bytes<'_>) -> Result<Vec<u8>, Error> {
    let mut decompression = Decompression::new().map_err(|what| records.error(what))?;
    let mut plain = Vec::new();
    while !records.is_empty() {
        let all = records.rest();
        let Record { kind, mut body, .. } = Record::take(&mut records)?;
        match kind {
            Type::Compressed => {}
            COMPRESSED2 => {
                let size = body.u64("the size of compressed records")?;
                body = body.part(size, "compressed records")?;
            }
            _ => {
                plain.extend_from_slice(&all[..all.len() - records.rest().len()]);
                continue;
            }
        }
        decompression.append(body.rest()).map_err(|what| body.error(what))?;
    }
    plain.extend_from_slice(&decompression.records);
    Ok(plain)
}

impl<'a> Record<'a> {
    /// Takes the next record.
    #[inline]
    pub(super) fn take(records: &mut Bytes<'a>) -> Result<Record<'a>, Error> {
        const HEADER: u64 = 8;
        let at = records.position();
        let kind = Type(records.u32("the type of a record")?);
        let misc = records.u16("a record")?;
        let size = records.u16("the size of a record")?;
        let len = u64::from(size).checked_sub(HEADER).ok_or_else(|| {
            Error::at_byte(at, format!("a record of {size} bytes has not even a header"))
        })?;
        let body = records.part(len, "a record")?;
        let mut start = body;
        let appendix = match kind {
            Type::HeaderTracingData => u64::from(start.u32("the size of the tracing data")?),
            Type::Auxtrace => start.u64("the size of hardware traces")?,
            _ => 0,
        };
        let appendix = records.part(appendix, "what follows a record")?;
        Ok(Record { kind, misc, body, appendix })
    }
}
