//! Encoding of records into a buffer of fixed size, without allocations.

use std::fmt::{self, Write};

use tracing_core::field::{Field, Visit};

use crate::layout::{CHECKSUM, Kind, NO_CPU, RECORD_BYTES, TEXT_BYTES, Tag, checksum};

pub(crate) type Buffer = [u8; RECORD_BYTES];

/// The part before the fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) cpu: Option<u16>,
    pub(crate) time: u64,
    pub(crate) thread: u32,
    pub(crate) callsite: u32,
    pub(crate) span: u64,
    /// The callsite of the span that an event is in, or of the other span.
    pub(crate) other_callsite: u32,
    /// The other span. Only stored for kinds that have one.
    pub(crate) other: u64,
}

#[derive(Debug)]
pub(crate) struct Encoder<'b> {
    buffer: &'b mut Buffer,
    length: usize,
    left_out: bool,
}

/// The index of the byte that is 1 if fields were left out.
const LEFT_OUT: usize = CHECKSUM + 1;
/// Number of bytes before a text: index, tag and length.
const TEXT_HEAD: usize = 4;

impl<'b> Encoder<'b> {
    pub(crate) fn begin(buffer: &'b mut Buffer, head: &Head) -> Encoder<'b> {
        let mut encoder = Encoder { buffer, length: CHECKSUM, left_out: false };
        // #[gamma::skip(literal, reason = "`finish` overwrites it")]
        encoder.put([head.kind as u8, 0]);
        encoder.put(head.cpu.unwrap_or(NO_CPU).to_le_bytes());
        encoder.put(head.time.to_le_bytes());
        encoder.put(head.thread.to_le_bytes());
        encoder.put(head.callsite.to_le_bytes());
        encoder.put(head.span.to_le_bytes());
        encoder.put(head.other_callsite.to_le_bytes());
        if head.kind.has_other() {
            encoder.put(head.other.to_le_bytes());
        }
        encoder
    }

    pub(crate) fn finish(self) -> &'b [u8] {
        self.buffer[LEFT_OUT] = u8::from(self.left_out);
        let (sum, rest) = self.buffer[..self.length].split_at_mut(CHECKSUM);
        sum.copy_from_slice(&checksum(rest));
        &self.buffer[..self.length]
    }

    /// Appends bytes. There must be room for them.
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.buffer[self.length..][..N].copy_from_slice(&bytes);
        self.length += N;
    }

    /// Appends a field whose value has a fixed size, or leaves it out.
    fn put_field<const N: usize>(&mut self, field: &Field, tag: Tag, value: [u8; N]) {
        if RECORD_BYTES - self.length < 2 + N {
            self.left_out = true;
            return;
        }
        self.put([field.index() as u8, tag as u8]);
        self.put(value);
    }

    /// Appends the text that `write` produces, or its beginning.
    fn put_text(
        &mut self,
        field: &Field,
        [whole, cut]: [Tag; 2],
        write: impl FnOnce(&mut Text<'_>) -> fmt::Result,
    ) {
        let start = self.length + TEXT_HEAD;
        let end = RECORD_BYTES.min(start + TEXT_BYTES);
        let Some(room) = self.buffer.get_mut(start..end) else {
            self.left_out = true;
            return;
        };
        let mut text = Text { room, length: 0 };
        let tag = if write(&mut text).is_ok() { whole } else { cut };
        let length = text.length;
        self.put([field.index() as u8, tag as u8]);
        self.put((length as u16).to_le_bytes());
        self.length += length;
    }
}

impl Visit for Encoder<'_> {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put_field(field, Tag::I64, value.to_le_bytes());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put_field(field, Tag::U64, value.to_le_bytes());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put_field(field, Tag::F64, value.to_le_bytes());
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put_field(field, Tag::I128, value.to_le_bytes());
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put_field(field, Tag::U128, value.to_le_bytes());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put_field(field, if value { Tag::True } else { Tag::False }, []);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, [Tag::Str, Tag::CutStr], |text| text.write_str(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, [Tag::Debug, Tag::CutDebug], |text| write!(text, "{value:?}"));
    }
}

/// A text in a buffer of fixed size. If a part does not fit, the write fails, so that the
/// formatting of a large value ends.
struct Text<'b> {
    room: &'b mut [u8],
    length: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = &mut self.room[self.length..];
        let most = part.len().min(room.len());
        // #[gamma::skip(literal, reason = "if nothing fits it is 0")]
        let ends = (0..=most).rev();
        let fits = ends.into_iter().find(|&end| part.is_char_boundary(end)).unwrap_or_default();
        room[..fits].copy_from_slice(&part.as_bytes()[..fits]);
        self.length += fits;
        if fits == part.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use tracing_core::{Callsite, Interest, Level, Metadata, metadata};

    use super::*;

    struct Nowhere;

    static NOWHERE: Nowhere = Nowhere;

    static EVENT: Metadata<'static> = metadata! {
        name: "event", target: "encode", level: Level::INFO, fields: &["one"],
        callsite: &NOWHERE, kind: tracing_core::Kind::EVENT,
    };

    impl Callsite for Nowhere {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            &EVENT
        }
    }

    /// Records an event that leaves `room` bytes, and then a value. Returns the bytes of that
    /// value, or `None` if it was left out.
    fn taken(room: usize, value: fn(&mut Encoder<'_>, &Field)) -> Option<usize> {
        let field = EVENT.fields().field("one").expect("a field");
        let (kind, cpu, time, thread, callsite) = (Kind::Event, None, 1, 2, 3);
        let head = Head { kind, cpu, time, thread, callsite, span: 0, other_callsite: 0, other: 0 };
        let mut buffer = [0; RECORD_BYTES];
        let mut encoder = Encoder::begin(&mut buffer, &head);
        encoder.record_str(&field, &"x".repeat(TEXT_BYTES));
        let rest = RECORD_BYTES - encoder.length - TEXT_HEAD - room;
        encoder.record_str(&field, &"x".repeat(rest));
        value(&mut encoder, &field);
        let bytes = encoder.finish();
        let taken = bytes.len() - (RECORD_BYTES - room);
        match bytes[LEFT_OUT] {
            0 => Some(taken),
            _ => (taken > 0).then(|| panic!("a part of it with {room} bytes")),
        }
    }

    #[test]
    fn what_has_room_to_the_last_byte_is_stored_whole_and_else_left_out() {
        type Record = fn(&mut Encoder<'_>, &Field);
        let fixed: [(Record, usize); 6] = [
            (|it, field| it.record_bool(field, true), 2),
            (|it, field| it.record_i64(field, 7), 10),
            (|it, field| it.record_u64(field, 7), 10),
            (|it, field| it.record_f64(field, 7.0), 10),
            (|it, field| it.record_i128(field, 7), 18),
            (|it, field| it.record_u128(field, 7), 18),
        ];
        for room in 0..24 {
            for (record, bytes) in fixed {
                assert_eq!(taken(room, record), (bytes <= room).then_some(bytes), "{room} {bytes}");
            }
            // A text is cut between characters.
            let text = |it: &mut Encoder<'_>, field: &Field| it.record_str(field, "a\u{e9}b");
            let fits = [0, 1, 1, 3, 4][room.saturating_sub(TEXT_HEAD).min(4)];
            assert_eq!(
                taken(room, text),
                (TEXT_HEAD <= room).then_some(TEXT_HEAD + fits),
                "{room}"
            );
        }
    }
}
