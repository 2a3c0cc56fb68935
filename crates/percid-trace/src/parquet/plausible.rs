//! Checks that the sizes that a file declares are possible.
//!
//! The library that reads Parquet reserves memory for what a file declares before it looks whether
//! it is there: lists in the description at the end of the file, texts in the headers of pages, the
//! pages themselves. A reservation that fails ends the process, and nothing can catch that. So we
//! walk through those structures first, in their encoding (Thrift's compact protocol), and refuse
//! what cannot be or is larger than any real trace needs.

use ::parquet::arrow::ProjectionMask;
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::ChunkReader;

use crate::error::Error;

/// The largest description of a file, in bytes.
const LARGEST_DESCRIPTION: u64 = 16 << 20;

/// The largest header of a page, in bytes.
const LARGEST_HEADER: u64 = 1 << 16;

/// The largest page before it was compressed, in bytes. Writers aim at one or a few megabytes.
const LARGEST_PAGE: i64 = 64 << 20;

/// The most groups of columns in a schema. They may be nested, and the library descends into them
/// recursively.
const MOST_GROUPS: u32 = 256;

/// Structures in structures.
const DEEPEST: u32 = 16;

/// Rows of a file of no size, and further ones for each of its bytes. Recorded events take two to
/// eight bytes each.
const ROWS: u64 = 1 << 20;
const ROWS_PER_BYTE: u64 = 16;

/// Returns the largest number of rows of a file of this size.
pub(super) fn most_rows(size: u64) -> u64 {
    size.saturating_mul(ROWS_PER_BYTE).saturating_add(ROWS)
}

/// Checks the description at the end of the file.
pub(super) fn check_description(file: &impl ChunkReader) -> Result<(), Error> {
    let size = file.len();
    let no_parquet = |at| Error::at_byte(at, "not a Parquet file: PAR1 expected");
    if size < 12 {
        return Err(no_parquet(0));
    }
    if &*bytes(file, 0, 4)? != b"PAR1" {
        return Err(no_parquet(0));
    }
    let tail = bytes(file, size - 8, 8)?;
    if &tail[4..] != b"PAR1" {
        return Err(no_parquet(size - 4));
    }
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if length > size - 12 || length > LARGEST_DESCRIPTION {
        let what = format!("the file's description cannot have {length} bytes");
        return Err(Error::at_byte(size - 8, what));
    }
    let start = size - 8 - length;
    check_structures(&bytes(file, start, length as usize)?, start)
}

fn check_structures(description: &[u8], start: u64) -> Result<(), Error> {
    /// The field of the description that lists the elements of the schema, and that of an element
    /// which counts those below it.
    const SCHEMA: i16 = 2;
    const CHILDREN: i16 = 5;
    let mut groups = 0;
    let mut walk = Walk { bytes: description, at: 0 };
    let walked = walk.structure(0, DEEPEST, &mut |parent, field, value| {
        groups += u32::from((parent, field) == (SCHEMA, CHILDREN) && value > 0);
    });
    if walked.is_none() {
        return Err(Error::at_byte(start + walk.at as u64, "the file's description is damaged"));
    }
    if groups > MOST_GROUPS {
        return Err(Error::at_byte(start, "the schema has too many groups of columns"));
    }
    Ok(())
}

/// Checks the headers of all pages of these columns.
pub(super) fn check_pages(
    file: &impl ChunkReader,
    metadata: &ParquetMetaData,
    columns: &ProjectionMask,
) -> Result<(), Error> {
    for group in metadata.row_groups() {
        let read = group.columns().iter().zip(0..).filter(|&(_, leaf)| columns.leaf_included(leaf));
        for (chunk, _) in read {
            // A column without values may have no page of data: writers then store 0, an offset at
            // which no page can be.
            let pages = [chunk.dictionary_page_offset().unwrap_or(0), chunk.data_page_offset()];
            let start = pages.into_iter().filter(|&page| page != 0).min().unwrap_or(0);
            let (start, length) = (unsigned(start)?, unsigned(chunk.compressed_size())?);
            let end = start.saturating_add(length);
            if end > file.len() {
                return Err(Error::at_byte(start, "a column goes beyond the end of the file"));
            }
            check_chunk(file, start, end)?;
        }
    }
    Ok(())
}

fn unsigned(number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|_| Error::at_byte(0, "a column has a negative place or size"))
}

/// Checks the headers of the pages that follow each other in `start..end`.
fn check_chunk(file: &impl ChunkReader, start: u64, end: u64) -> Result<(), Error> {
    let mut at = start;
    while at < end {
        let header = header(file, at, end)?;
        let body = at + header.length;
        let plausible = (0..=LARGEST_PAGE).contains(&header.uncompressed)
            && (0..=(end - body) as i64).contains(&header.compressed)
            && (0..=i64::from(u32::MAX)).contains(&header.values)
            && header.values as u64 <= most_rows(file.len());
        if !plausible {
            return Err(Error::at_byte(at, "a page cannot be as large as its header says"));
        }
        at = body + header.compressed as u64;
    }
    Ok(())
}

/// The relevant fields of a page's header.
#[derive(Default)]
struct Header {
    length: u64,
    uncompressed: i64,
    compressed: i64,
    values: i64,
}

/// Reads the header at `at`: first a piece that is enough for most, then as much as a header may
/// have.
fn header(file: &impl ChunkReader, at: u64, end: u64) -> Result<Header, Error> {
    for window in [512, LARGEST_HEADER] {
        let window = window.min(end - at);
        if let Some(header) = header_in(&bytes(file, at, window as usize)?) {
            return Ok(header);
        }
    }
    Err(Error::at_byte(at, "the header of a page is damaged"))
}

fn header_in(bytes: &[u8]) -> Option<Header> {
    /// The fields of a header: its sizes, and the headers of three kinds of pages, which begin with
    /// a number of values.
    const UNCOMPRESSED: i16 = 2;
    const COMPRESSED: i16 = 3;
    const KINDS: [i16; 3] = [5, 7, 8];
    let mut header = Header::default();
    let mut walk = Walk { bytes, at: 0 };
    walk.structure(0, DEEPEST, &mut |parent, field, value| match (parent, field) {
        (0, UNCOMPRESSED) => header.uncompressed = value,
        (0, COMPRESSED) => header.compressed = value,
        (kind, 1) if KINDS.contains(&kind) => header.values = value,
        _ => {}
    })?;
    header.length = walk.at as u64;
    Some(header)
}

fn bytes(file: &impl ChunkReader, at: u64, length: usize) -> Result<::bytes::Bytes, Error> {
    file.get_bytes(at, length).map_err(|error| Error::at_byte(at, error.to_string()))
}

/// A way through a structure in Thrift's compact protocol.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The protocol's types.
mod of_type {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const UUID: u8 = 13;
}

impl Walk<'_> {
    /// Walks through a structure that is the field `parent` of another (0: of none), and hands
    /// every integer to `found`: `(parent, field, value)`. `None` if the structure ends too early
    /// or is none.
    fn structure(
        &mut self,
        parent: i16,
        depth: u32,
        found: &mut impl FnMut(i16, i16, i64),
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let mut field = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.integer()?).ok()?,
                step => field.checked_add(i16::from(step))?,
            };
            match head & 0xf {
                of_type::TRUE | of_type::FALSE => {}
                of_type::I16..=of_type::I64 => found(parent, field, self.integer()?),
                other => self.value(other, field, depth, found)?,
            }
        }
    }

    /// Walks over a value of a field, or of a list that is a field.
    fn value(
        &mut self,
        of_type: u8,
        field: i16,
        depth: u32,
        found: &mut impl FnMut(i16, i16, i64),
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match of_type {
            of_type::TRUE | of_type::FALSE | of_type::BYTE => self.skip(1),
            of_type::I16..=of_type::I64 => self.integer().map(drop),
            of_type::DOUBLE => self.skip(8),
            of_type::BINARY => self.length().and_then(|length| self.skip(length)),
            of_type::LIST | of_type::SET => {
                let head = self.byte()?;
                let length = if head >> 4 == 15 { self.length()? } else { head as usize >> 4 };
                (0..length).try_for_each(|_| self.value(head & 0xf, field, depth, found))
            }
            of_type::MAP => self.map(field, depth, found),
            of_type::STRUCT => self.structure(field, depth, found),
            of_type::UUID => self.skip(16),
            _ => None,
        }
    }

    fn map(&mut self, field: i16, depth: u32, found: &mut impl FnMut(i16, i16, i64)) -> Option<()> {
        let length = self.length()?;
        if length == 0 {
            return Some(());
        }
        let types = self.byte()?;
        (0..length).try_for_each(|_| {
            self.value(types >> 4, field, depth, found)?;
            self.value(types & 0xf, field, depth, found)
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.at = self.at.checked_add(length).filter(|&at| at <= self.bytes.len())?;
        Some(())
    }

    /// A number of bytes, or of things of at least one byte each, that follow.
    fn length(&mut self) -> Option<usize> {
        let length = usize::try_from(self.varint()?).ok()?;
        (length <= self.bytes.len() - self.at).then_some(length)
    }

    /// An integer whose sign is its lowest bit.
    fn integer(&mut self) -> Option<i64> {
        let coded = self.varint()?;
        Some((coded >> 1) as i64 ^ -((coded & 1) as i64))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An integer as the protocol writes it.
    fn integer(value: i64) -> Vec<u8> {
        let mut coded = (value << 1 ^ value >> 63) as u64;
        let mut bytes = Vec::new();
        while coded >= 0x80 {
            bytes.push(coded as u8 | 0x80);
            coded >>= 7;
        }
        bytes.push(coded as u8);
        bytes
    }

    /// A page: a header with these sizes and this number of values, and as many bytes as are there.
    fn page(uncompressed: i64, compressed: i64, values: i64, there: usize) -> bytes::Bytes {
        const NEXT_FIELD_IS_I32: &[u8] = &[0x15];
        // The header of a data page, two fields further on.
        const NEXT_BUT_ONE_IS_STRUCT: &[u8] = &[0x2c];
        const STOP: &[u8] = &[0];
        let (uncompressed, compressed) = (integer(uncompressed), integer(compressed));
        let parts: [&[u8]; 12] = [
            NEXT_FIELD_IS_I32,
            &integer(0),
            NEXT_FIELD_IS_I32,
            &uncompressed,
            NEXT_FIELD_IS_I32,
            &compressed,
            NEXT_BUT_ONE_IS_STRUCT,
            NEXT_FIELD_IS_I32,
            &integer(values),
            STOP,
            STOP,
            &vec![0xaa; there],
        ];
        parts.concat().into()
    }

    fn check(page: bytes::Bytes) -> Result<(), Error> {
        let end = page.len() as u64;
        check_chunk(&page, 0, end)
    }

    #[test]
    fn pages_that_can_be_are_let_through() {
        check(page(1000, 300, 500, 300)).expect("a page");
        let two = [&page(1000, 300, 500, 300)[..], &page(64 << 20, 10, 500, 10)[..]].concat();
        check(two.into()).expect("two pages");
    }

    #[test]
    fn pages_that_cannot_be_are_refused() {
        let impossible = [
            ("larger than any", page((64 << 20) + 1, 300, 500, 300)),
            ("of a negative size", page(-1, 300, 500, 300)),
            ("compressed to less than nothing", page(1000, -1, 500, 300)),
            ("beyond the end", page(1000, 301, 500, 300)),
            ("with more values than rows can be", page(1000, 300, 1 << 30, 300)),
            ("with fewer values than none", page(1000, 300, -1, 300)),
            ("cut off in its header", page(1000, 300, 500, 300).slice(..5)),
        ];
        for (what, page) in impossible {
            assert!(check(page).is_err(), "a page {what}");
        }
    }

    /// Returns `true` if these bytes are a structure.
    fn walked(bytes: &[u8]) -> bool {
        Walk { bytes, at: 0 }.structure(0, DEEPEST, &mut |_, _, _| {}).is_some()
    }

    #[test]
    fn lists_that_declare_more_than_follows_are_refused() {
        const LIST: u8 = 0x19;
        const TWO_BYTES: u8 = 0x23;
        const MANY_BYTES: u8 = 0xf3;
        assert!(walked(&[LIST, TWO_BYTES, 1, 2, 0]));
        assert!(!walked(&[LIST, TWO_BYTES, 1]));
        assert!(!walked(&[LIST, MANY_BYTES, 0xff, 0xff, 0xff, 0x7f, 1, 2, 0]));
        const TEXT: u8 = 0x18;
        assert!(walked(&[TEXT, 2, b'a', b'b', 0]));
        assert!(!walked(&[TEXT, 0xff, 0xff, 0x7f, b'a', b'b', 0]));
    }

    #[test]
    fn structures_that_are_too_deep_are_refused() {
        const STRUCT: u8 = 0x1c;
        let nested = |depth| [vec![STRUCT; depth], vec![0; depth + 1]].concat();
        assert!(walked(&nested(3)));
        assert!(!walked(&nested(1000)));
    }
}
