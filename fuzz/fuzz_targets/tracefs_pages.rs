//! Sub-buffers of the kernel's trace, as read from `trace_pipe_raw`, and the kernel's description
//! of their layout.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid_trace::formats::ByteOrder;
use percid_trace::{error, formats};
use sub_buffers::{Layout, Record, SubBuffer};

/// The common code of the recorder and the reader of trace.dat: it is private there.
#[path = "../../crates/percid-trace/src/sub_buffers.rs"]
#[allow(dead_code, reason = "those two use all of it")]
mod sub_buffers;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// A sub-buffer in the kernel's layout, whether its words have 64 bits, and their highest byte
    /// comes first.
    Page(bool, bool, &'a [u8]),
    /// A description, and a sub-buffer that follows it.
    Described(bool, &'a str, &'a [u8]),
    /// Records that a kernel wrote, which must be read as they were written.
    Written { big: bool, lost: Option<u16>, records: Vec<Written<'a>> },
}

#[derive(Arbitrary, Debug)]
enum Written<'a> {
    Record(u16, &'a [u8]),
    /// A pause that exceeds the space in a record.
    Pause(u32, u16),
    /// A record that was taken back.
    Discarded(u16, u8),
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Page(wide, big, bytes) => read(bytes, &layout(wide, order(big))),
        Input::Described(big, description, bytes) => match Layout::read(description, order(big)) {
            Ok(layout) => read(bytes, &layout),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        Input::Written { big, lost, records } => Writer(order(big)).check(lost, &records),
    }
});

fn order(big: bool) -> ByteOrder {
    if big { ByteOrder::Big } else { ByteOrder::Little }
}

fn layout(wide: bool, order: ByteOrder) -> Layout {
    let (commit, data) = if wide { (8, 16) } else { (4, 12) };
    let description = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{commit};\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:4080;\tsigned:0;\n"
    );
    Layout::read(&description, order).expect("the kernel's description")
}

/// Reads all records: no more than there is room for.
fn read(bytes: &[u8], layout: &Layout) {
    let Ok(mut page) = SubBuffer::new(bytes, layout) else { return };
    let (mut count, mut size) = (0, 0);
    while let Ok(Some(Record { data, .. })) = page.next() {
        (count, size) = (count + 1, size + data.len());
        assert!(size + 4 * count <= bytes.len(), "more records than bytes");
    }
}

/// Writes records as the kernel of a machine with this order of bytes does, and reads them: the same, at
/// the same times.
struct Writer(ByteOrder);

impl Writer {
    fn check(&self, lost: Option<u16>, written: &[Written<'_>]) {
        const START: u64 = 1_000_000;
        let (mut body, mut expected, mut time) = (Vec::new(), Vec::new(), START);
        for record in written {
            match *record {
                Written::Record(distance, data) => {
                    // Records are filled up to four bytes, so that is what can be said of their length.
                    let data = &data[..data.len() & !3];
                    time += u64::from(distance);
                    self.record(&mut body, distance.into(), data);
                    expected.push((time, data.to_vec()));
                }
                Written::Pause(high, low) => {
                    // A day and a half at most: many in a row must not exceed the clock.
                    let high = high & 0xf_ffff;
                    let pause = u64::from(high) << 27 | u64::from(low);
                    time += pause;
                    body.extend(self.header(30, low.into()));
                    body.extend(self.u32(high));
                }
                Written::Discarded(distance, words) => {
                    // A distance of 0 would end the sub-buffer; the kernel writes 1 in its place.
                    time += if distance <= 1 { 0 } else { u64::from(distance) };
                    let room = 4 * usize::from(words);
                    body.extend(self.header(29, u32::from(distance.max(1))));
                    body.extend(self.u32(room as u32 + 4));
                    body.resize(body.len() + room, 0xaa);
                }
            }
        }
        let mut bytes = self.u64(START).to_vec();
        let flags = if lost.is_some() { 3 << 30 } else { 0 };
        bytes.extend(self.u64(body.len() as u64 | flags));
        bytes.extend(body);
        if let Some(lost) = lost {
            bytes.extend(self.u64(lost.into()));
        }
        let mut page = SubBuffer::new(&bytes, &layout(true, self.0)).expect("a good sub-buffer");
        assert_eq!(page.lost, lost.map_or(0, |lost| u64::from(lost).max(1)));
        for expected in expected {
            let Record { time, data } = page.next().expect("good").expect("as many as written");
            assert_eq!((time, data), (expected.0, &expected.1[..]));
        }
        assert_eq!(page.next().expect("the end"), None);
    }

    fn record(&self, body: &mut Vec<u8>, distance: u32, data: &[u8]) {
        match data.len() / 4 {
            words @ 1..=28 => body.extend(self.header(words as u32, distance)),
            // The length stands in a word of its own, which it counts.
            _ => {
                body.extend(self.header(0, distance));
                body.extend(self.u32(data.len() as u32 + 4));
            }
        }
        body.extend(data);
    }

    fn header(&self, kind: u32, distance: u32) -> [u8; 4] {
        match self.0 {
            ByteOrder::Big => self.u32(kind << 27 | distance),
            ByteOrder::Little => self.u32(distance << 5 | kind),
        }
    }

    fn u32(&self, number: u32) -> [u8; 4] {
        match self.0 {
            ByteOrder::Big => number.to_be_bytes(),
            ByteOrder::Little => number.to_le_bytes(),
        }
    }

    fn u64(&self, number: u64) -> [u8; 8] {
        match self.0 {
            ByteOrder::Big => number.to_be_bytes(),
            ByteOrder::Little => number.to_le_bytes(),
        }
    }
}
