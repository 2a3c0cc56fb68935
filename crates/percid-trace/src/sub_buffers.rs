//! The sub-buffers of the kernel's trace, in the form in which `trace_pipe_raw` hands them out and
//! `trace-cmd` stores them.
//!
//! A sub-buffer begins with a time and with the number of bytes in use. Records follow, each with
//! its distance in time to the one before. If the buffer had been overwritten before it was read,
//! the header has a flag for that. If there is room after the last record, it then contains the
//! number of lost records.

use crate::error::Error;
use crate::formats::ByteOrder;

/// Layout of a sub-buffer, as described in the kernel's `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    order: ByteOrder,
    /// Bytes of the number of bytes in use: those of the kernel's `long`.
    commit_size: usize,
    /// Offset of the number of bytes in use.
    commit: usize,
    /// Offset at which the records begin.
    data: usize,
    /// Bytes of a whole sub-buffer.
    pub(crate) size: usize,
}

/// More than any kernel offers, so that a wrong description cannot exhaust the memory.
const MAX_SUB_BUFFER_BYTES: usize = 16 << 20;

impl Layout {
    /// Reads the description of the kernel of a machine with this order of bytes. A line is `field: TYPE NAME; offset:N; size:N; signed:N;`.
    pub(crate) fn read(header_page: &str, order: ByteOrder) -> Result<Layout, Error> {
        let field = |name: &str| -> Result<(usize, usize), Error> {
            let found = (1..).zip(header_page.lines()).find_map(|(nr, line)| {
                let mut parts = line.trim().split(';').map(str::trim);
                let named = parts.next()?.strip_prefix("field:")?;
                (named.split_whitespace().last()? == name).then_some((nr, line))
            });
            let (nr, line) = found.ok_or_else(|| Error::at_line(1, format!("no field {name}")))?;
            let number = |key: &str| {
                let mut parts = line.split(';').map(str::trim);
                let number: Option<usize> =
                    parts.find_map(|part| part.strip_prefix(key)?.trim().parse().ok());
                number
                    .filter(|&number| number <= MAX_SUB_BUFFER_BYTES)
                    .ok_or_else(|| Error::at_line(nr, format!("no {key} in the field {name}")))
            };
            Ok((number("offset:")?, number("size:")?))
        };
        let (timestamp, (commit, commit_size), (data, data_size)) =
            (field("timestamp")?, field("commit")?, field("data")?);
        if timestamp != (0, 8) || !matches!(commit_size, 4 | 8) || commit + commit_size > data {
            let what = "expected a time of 8 bytes, the bytes in use, and the records after both";
            return Err(Error::at_line(1, what));
        }
        Ok(Layout { order, commit_size, commit, data, size: data + data_size })
    }

    /// Returns the layout for sub-buffers of another size; `None` if that is not a valid size.
    #[cfg(feature = "files")]
    pub(crate) fn with_size(self, size: usize) -> Option<Layout> {
        (size > self.data && size <= MAX_SUB_BUFFER_BYTES).then_some(Layout { size, ..self })
    }

    /// A number of as many bytes as that of the bytes in use.
    fn word(&self, bytes: &[u8], at: usize) -> Option<u64> {
        match self.commit_size {
            4 => word32(bytes, at, self.order).map(u64::from),
            _ => word64(bytes, at, self.order),
        }
    }
}

/// A record of a sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// Time, in nanoseconds of the trace's clock.
    pub(crate) time: u64,
    /// The recorded data; it begins with the number of the event. It may end with bytes that fill
    /// it up to four.
    pub(crate) data: &'a [u8],
}

/// The records of a sub-buffer, in their order.
#[derive(Debug, Clone)]
pub(crate) struct SubBuffer<'a> {
    order: ByteOrder,
    /// The records and nothing else.
    records: &'a [u8],
    /// Offset at which they begin.
    from: usize,
    at: usize,
    time: u64,
    /// Number of records before the first one that are known to be lost; at least 1 if some are.
    pub(crate) lost: u64,
}

/// Bits of the number of bytes in use that are none of it.
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const IN_USE: u64 = (1 << 27) - 1;

const LARGEST_TYPE_WITH_LENGTH: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const DELTA_BITS: u32 = 27;

/// The bits of a time that an absolute time stamp has no room for.
const ABSOLUTE_MISSES: u64 = 0xf8 << 56;

impl<'a> SubBuffer<'a> {
    /// Takes what one read returned.
    pub(crate) fn new(bytes: &'a [u8], layout: &Layout) -> Result<SubBuffer<'a>, Error> {
        let (Some(time), Some(commit)) =
            (word64(bytes, 0, layout.order), layout.word(bytes, layout.commit))
        else {
            return Err(Error::at_byte(0, "expected the header of a sub-buffer"));
        };
        let end = layout.data + (commit & IN_USE) as usize;
        let Some(records) = bytes.get(layout.data..end) else {
            let what = format!("expected at most {} bytes, found {end}", bytes.len());
            return Err(Error::at_byte(layout.commit as u64, what));
        };
        let stored = (commit & MISSED_STORED != 0).then(|| layout.word(bytes, end));
        let lost = match (commit & MISSED_EVENTS != 0, stored.flatten()) {
            (true, count) => count.unwrap_or(1).max(1),
            (false, _) => 0,
        };
        Ok(SubBuffer { order: layout.order, records, from: layout.data, at: 0, time, lost })
    }

    /// The next record; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'a>>, Error> {
        while let Some(header) = word32(self.records, self.at, self.order) {
            let (kind, delta) = split(header, self.order);
            let first = word32(self.records, self.at + 4, self.order);
            let at = self.at;
            let from = self.from;
            let cut = || Error::at_byte((from + at) as u64, "expected the rest of a record");
            let body = match kind {
                PADDING if delta == 0 => break,
                // A record that was taken back. The kernel writes 1 where it had no distance.
                PADDING => {
                    let length = first.ok_or_else(cut)?;
                    self.time = self.time.wrapping_add(if delta == 1 { 0 } else { delta });
                    self.skip(4 + length as usize).ok_or_else(cut)?;
                    continue;
                }
                TIME_EXTEND.. => {
                    let high = u64::from(first.ok_or_else(cut)?);
                    self.set_time(kind, high << DELTA_BITS | delta);
                    self.skip(8).ok_or_else(cut)?;
                    continue;
                }
                0 => {
                    let length = first.ok_or_else(cut)? as usize;
                    at + 8..at + 4 + length.max(4)
                }
                1..=LARGEST_TYPE_WITH_LENGTH => at + 4..at + 4 + 4 * kind as usize,
            };
            let data = self.records.get(body.clone()).ok_or_else(cut)?;
            self.time = self.time.wrapping_add(delta);
            self.at = body.end.next_multiple_of(4);
            return Ok(Some(Record { time: self.time, data }));
        }
        self.at = self.records.len();
        Ok(None)
    }

    fn set_time(&mut self, kind: u32, value: u64) {
        if kind == TIME_EXTEND {
            self.time = self.time.wrapping_add(value);
            return;
        }
        let mut time = value | self.time & ABSOLUTE_MISSES;
        if time < self.time {
            time = time.wrapping_add(1 << 59);
        }
        self.time = time;
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        let next = (self.at + bytes).next_multiple_of(4);
        // The last record may end without what fills it up.
        (self.at + bytes <= self.records.len()).then(|| self.at = next)
    }
}

/// Kind or length, and distance in time: bit fields, which compilers for big-endian machines lay out
/// from the other end.
fn split(header: u32, order: ByteOrder) -> (u32, u64) {
    match order {
        ByteOrder::Big => (header >> DELTA_BITS, u64::from(header & ((1 << DELTA_BITS) - 1))),
        ByteOrder::Little => (header & 31, u64::from(header >> 5)),
    }
}

fn word32(bytes: &[u8], at: usize, order: ByteOrder) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(order.u32(bytes.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize, order: ByteOrder) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(order.u64(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use percid_sim::random::Random;

    use super::*;

    const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn layout() -> Layout {
        Layout::read(HEADER_PAGE, ByteOrder::NATIVE).expect("the kernel's description")
    }

    fn header(kind: u32, delta: u32) -> [u8; 4] {
        let both = if cfg!(target_endian = "big") { kind << 27 | delta } else { delta << 5 | kind };
        both.to_ne_bytes()
    }

    /// A sub-buffer that begins at 1000 ns.
    fn page(flags: u64, records: &[u8], behind: &[u8]) -> Vec<u8> {
        let commit = records.len() as u64 | flags;
        [&1000u64.to_ne_bytes()[..], &commit.to_ne_bytes(), records, behind].concat()
    }

    /// One record of each form, and one that does not count.
    fn records() -> Vec<u8> {
        let long = [7u8; 120];
        [
            &header(2, 5)[..],
            b"12345678",
            &header(TIME_EXTEND, 1),
            &1u32.to_ne_bytes(),
            &header(1, 3),
            b"abcd",
            &header(PADDING, 1),
            &4u32.to_ne_bytes(),
            &header(PADDING, 6),
            &8u32.to_ne_bytes(),
            &[0; 4],
            &header(0, 2),
            &124u32.to_ne_bytes(),
            &long,
            &header(31, 9),
            &4u32.to_ne_bytes(),
            &header(1, 0),
            b"last",
            &header(PADDING, 0),
            b"nothing of this counts",
        ]
        .concat()
    }

    /// The number of lost records, and the times and bytes of the others.
    type Read = (u64, Vec<(u64, Vec<u8>)>);

    fn read(bytes: &[u8]) -> Result<Read, Error> {
        let mut page = SubBuffer::new(bytes, &layout())?;
        let mut found = Vec::new();
        while let Some(Record { time, data }) = page.next()? {
            found.push((time, data.to_vec()));
        }
        Ok((page.lost, found))
    }

    #[test]
    fn the_layout_is_the_kernels() {
        let order = ByteOrder::NATIVE;
        assert_eq!(layout(), Layout { order, commit_size: 8, commit: 8, data: 16, size: 4096 });
        for (from, to) in [
            ("data", "date"),
            ("size:4080", "size:x"),
            ("size:4080", "size:99999999999"),
            ("offset:16", "offset:12"),
            ("u64 timestamp;\toffset:0", "u64 timestamp;\toffset:4"),
        ] {
            assert!(Layout::read(&HEADER_PAGE.replace(from, to), order).is_err(), "{to}");
        }
    }

    #[test]
    fn records_of_all_forms() {
        let (lost, found) = read(&page(0, &records(), &[])).expect("a good sub-buffer");
        let extended = 1005 + (1 << 27) + 1;
        let absolute = 4 << 27 | 9;
        let expected = [
            (1005, b"12345678".to_vec()),
            (extended + 3, b"abcd".to_vec()),
            (extended + 3 + 6 + 2, vec![7; 120]),
            (absolute, b"last".to_vec()),
        ];
        assert_eq!((lost, found), (0, expected.to_vec()));
    }

    /// The same records as machines of both kinds write them.
    #[test]
    fn records_of_either_byte_order_are_the_same() {
        let read = |order, bytes: &[u8]| {
            let layout = Layout::read(HEADER_PAGE, order).expect("the kernel's description");
            let mut page = SubBuffer::new(bytes, &layout).ok()?;
            page.next().ok()?.map(|record| (record.time, record.data.to_vec()))
        };
        let (time, delta) = (1u64 << 40 | 7, 5);
        let little = [
            &time.to_le_bytes()[..],
            &8u64.to_le_bytes(),
            &(delta << 5 | 1u32).to_le_bytes(),
            b"abcd",
        ];
        let big = [
            &time.to_be_bytes()[..],
            &8u64.to_be_bytes(),
            &(1u32 << 27 | delta).to_be_bytes(),
            b"abcd",
        ];
        let expected = Some((time + u64::from(delta), b"abcd".to_vec()));
        assert_eq!(read(ByteOrder::Little, &little.concat()), expected);
        assert_eq!(read(ByteOrder::Big, &big.concat()), expected);
        assert_eq!(read(ByteOrder::Little, &big.concat()), None, "the control");
    }

    #[test]
    fn an_absolute_time_has_its_highest_bits_from_the_one_before() {
        let before = 5u64 << 59 | 100;
        let stamp = |value: u32| [&header(31, value)[..], &[0; 4], &header(1, 0), b"abcd"].concat();
        let time_of = |value| {
            let mut bytes = page(0, &stamp(value), &[]);
            bytes[..8].copy_from_slice(&before.to_ne_bytes());
            read(&bytes).expect("a good sub-buffer").1[0].0
        };
        assert_eq!(time_of(200), 5 << 59 | 200);
        assert_eq!(time_of(50), 6 << 59 | 50, "it has wrapped");
    }

    #[test]
    fn losses_are_counted() {
        let records = [&header(1, 0)[..], b"abcd"].concat();
        let count = 12345u64.to_ne_bytes();
        let lost = |flags, behind| read(&page(flags, &records, behind)).expect("good").0;
        assert_eq!(lost(MISSED_EVENTS | MISSED_STORED, &count[..]), 12345);
        assert_eq!(lost(MISSED_EVENTS | MISSED_STORED, &[]), 1, "the count is missing");
        assert_eq!(lost(MISSED_EVENTS, &count), 1);
        assert_eq!(lost(0, &count), 0);
    }

    #[test]
    fn a_sub_buffer_that_is_cut_off_is_refused_with_the_place() {
        let whole = page(0, &records(), &[]);
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes");
        }
        let cut = page(0, &[&header(2, 5)[..], b"1234"].concat(), &[]);
        let error = read(&cut).expect_err("half a record").to_string();
        assert!(error.starts_with("byte 16: "), "{error}");
    }

    #[test]
    fn damaged_sub_buffers_are_read_or_refused() {
        let whole = page(MISSED_EVENTS | MISSED_STORED, &records(), &[1; 8]);
        for seed in 0..100_000 {
            let mut random = Random::new(seed);
            let mut bytes = whole.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            bytes.truncate(bytes.len() - random.below(bytes.len() as u64 / 8) as usize);
            if let Ok((_, found)) = read(&bytes) {
                let size: usize = found.iter().map(|(_, data)| data.len()).sum();
                assert!(size <= bytes.len() && found.len() <= bytes.len() / 4, "seed {seed}");
            }
        }
    }
}
