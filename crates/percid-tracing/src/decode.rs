//! Decoding of records. For any bytes, decoding ends without a panic. Bytes that the encoder did
//! not write are not decoded to a record.

use tracing_core::Metadata;

use crate::callsites::{Callsites, NONE};
use crate::layout::{CHECKSUM, Kind, NO_CPU, Tag, checksum};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record<'b> {
    pub(crate) kind: Kind,
    /// Time since the recorder was built, in nanoseconds.
    pub(crate) time: u64,
    pub(crate) thread: u32,
    pub(crate) cpu: Option<u16>,
    pub(crate) metadata: &'static Metadata<'static>,
    /// The subject of the record; `None` for events.
    pub(crate) span: Option<u64>,
    /// The span that an event is in, the parent of a new span, or the span that this one follows.
    pub(crate) other: Option<OtherSpan>,
    pub(crate) fields: Vec<(&'static str, Value<'b>)>,
    /// `true` if there was no room for some fields.
    pub(crate) left_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OtherSpan {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'b> {
    I64(i64),
    U64(u64),
    F64(f64),
    I128(i128),
    U128(u128),
    Bool(bool),
    Str(Text<'b>),
    Debug(Text<'b>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'b> {
    pub(crate) text: &'b str,
    /// `true` if this is only the beginning of the text.
    pub(crate) cut: bool,
}

impl<'b> Record<'b> {
    /// Decodes a record. Returns `None` if the bytes are damaged.
    pub(crate) fn decode(bytes: &'b [u8], callsites: &Callsites) -> Option<Record<'b>> {
        let (sum, bytes) = bytes.split_first_chunk::<CHECKSUM>()?;
        if *sum != checksum(bytes) {
            return None;
        }
        Record::decode_checked(Reader { bytes }, callsites)
    }

    fn decode_checked(mut reader: Reader<'b>, callsites: &Callsites) -> Option<Record<'b>> {
        let kind = Kind::from_byte(reader.u8()?)?;
        let left_out = reader.flag()?;
        let cpu = Some(reader.u16()?).filter(|cpu| *cpu != NO_CPU);
        let time = reader.u64()?;
        let thread = reader.u32()?;
        let metadata = callsites.get(reader.u32()?)?;
        if metadata.is_event() != (kind == Kind::Event) {
            return None;
        }
        let first = reader.u64()?;
        let other_callsite = reader.u32()?;
        let (span, other) = match kind {
            Kind::Event => (None, first),
            kind if kind.has_other() => (Some(first), reader.u64()?),
            _ => (Some(first), 0),
        };
        if span == Some(0) {
            return None;
        }
        let other = other_span(other, other_callsite, callsites)?;
        let fields = fields(reader, metadata)?;
        Some(Record { kind, time, thread, cpu, metadata, span, other, fields, left_out })
    }
}

/// Returns the other span, if any. Returns `None` if the bytes are damaged.
fn other_span(id: u64, callsite: u32, callsites: &Callsites) -> Option<Option<OtherSpan>> {
    if id == 0 {
        return (callsite == NONE).then_some(None);
    }
    let metadata = callsites.get(callsite)?;
    metadata.is_span().then_some(Some(OtherSpan { id, name: metadata.name() }))
}

fn fields<'b>(
    mut reader: Reader<'b>,
    metadata: &'static Metadata<'static>,
) -> Option<Vec<(&'static str, Value<'b>)>> {
    let mut fields = Vec::new();
    while !reader.bytes.is_empty() {
        // #[gamma::skip(try, reason = "there is a byte")]
        let index = usize::from(reader.u8()?);
        let name = metadata.fields().iter().nth(index)?.name();
        fields.push((name, reader.value()?));
    }
    Some(fields)
}

struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Value<'b>> {
        let tag = Tag::from_byte(self.u8()?)?;
        Some(match tag {
            Tag::I64 => Value::I64(self.take().map(i64::from_le_bytes)?),
            Tag::U64 => Value::U64(self.u64()?),
            Tag::F64 => Value::F64(self.take().map(f64::from_le_bytes)?),
            Tag::I128 => Value::I128(self.take().map(i128::from_le_bytes)?),
            Tag::U128 => Value::U128(self.take().map(u128::from_le_bytes)?),
            Tag::False => Value::Bool(false),
            Tag::True => Value::Bool(true),
            Tag::Str | Tag::CutStr => Value::Str(self.text(tag == Tag::CutStr)?),
            Tag::Debug | Tag::CutDebug => Value::Debug(self.text(tag == Tag::CutDebug)?),
        })
    }

    fn text(&mut self, cut: bool) -> Option<Text<'b>> {
        let length = usize::from(self.u16()?);
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(Text { text: std::str::from_utf8(text).ok()?, cut })
    }
}
