//! Sub-buffers of the kernel's trace, as `trace_pipe_raw` hands them out, and the kernel's
//! description of how they are laid out.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use pages::{Layout, Page, Record};
use percid_trace::error;

/// The recorder's own file: it is private there.
#[path = "../../crates/percid-trace/src/record/linux/tracefs/pages.rs"]
#[allow(dead_code, reason = "the recorder uses all of it")]
mod pages;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// A sub-buffer in the kernel's layout, and whether its words have 64 bits.
    Page(bool, &'a [u8]),
    /// A description, and a sub-buffer that follows it.
    Described(&'a str, &'a [u8]),
    /// What a kernel wrote, which must be read as it was written.
    Written { lost: Option<u16>, records: Vec<Written<'a>> },
}

#[derive(Arbitrary, Debug)]
enum Written<'a> {
    Record(u16, &'a [u8]),
    /// A longer pause than a record has room for.
    Pause(u32, u16),
    /// A record that was taken back.
    Discarded(u16, u8),
}

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::Page(wide, bytes) => read(bytes, &layout(wide)),
        Input::Described(description, bytes) => match Layout::read(description) {
            Ok(layout) => read(bytes, &layout),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        Input::Written { lost, records } => check_written(lost, &records),
    }
});

fn layout(wide: bool) -> Layout {
    let (commit, data) = if wide { (8, 16) } else { (4, 12) };
    let description = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{commit};\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:4080;\tsigned:0;\n"
    );
    Layout::read(&description).expect("the kernel's description")
}

/// Reads all records: no more than there is room for.
fn read(bytes: &[u8], layout: &Layout) {
    let Ok(mut page) = Page::new(bytes, layout) else { return };
    let (mut count, mut size) = (0, 0);
    while let Ok(Some(Record { data, .. })) = page.next() {
        (count, size) = (count + 1, size + data.len());
        assert!(size + 4 * count <= bytes.len(), "more records than bytes");
    }
}

/// Writes records as the kernel does and reads them: the same, at the same times.
fn check_written(lost: Option<u16>, written: &[Written<'_>]) {
    const START: u64 = 1_000_000;
    let (mut body, mut expected, mut time) = (Vec::new(), Vec::new(), START);
    for record in written {
        match *record {
            Written::Record(distance, data) => {
                // Records are filled up to four bytes, so that is what can be said of their length.
                let data = &data[..data.len() & !3];
                time += u64::from(distance);
                write_record(&mut body, distance.into(), data);
                expected.push((time, data.to_vec()));
            }
            Written::Pause(high, low) => {
                // A day and a half at the most: many in a row must not exceed the clock.
                let high = high & 0xf_ffff;
                let pause = u64::from(high) << 27 | u64::from(low);
                time += pause;
                body.extend(header(30, low.into()));
                body.extend(high.to_ne_bytes());
            }
            Written::Discarded(distance, words) => {
                // A distance of 0 would end the sub-buffer; the kernel writes 1 in its place.
                time += if distance <= 1 { 0 } else { u64::from(distance) };
                let room = 4 * usize::from(words);
                body.extend(header(29, u32::from(distance.max(1))));
                body.extend((room as u32 + 4).to_ne_bytes());
                body.resize(body.len() + room, 0xaa);
            }
        }
    }
    let mut bytes = START.to_ne_bytes().to_vec();
    let flags = if lost.is_some() { 3 << 30 } else { 0 };
    bytes.extend((body.len() as u64 | flags).to_ne_bytes());
    bytes.extend(body);
    if let Some(lost) = lost {
        bytes.extend(u64::from(lost).to_ne_bytes());
    }
    let mut page = Page::new(&bytes, &layout(true)).expect("a good sub-buffer");
    assert_eq!(page.lost, lost.map_or(0, |lost| u64::from(lost).max(1)));
    for expected in expected {
        let Record { time, data } = page.next().expect("good").expect("as many as written");
        assert_eq!((time, data), (expected.0, &expected.1[..]));
    }
    assert_eq!(page.next().expect("the end"), None);
}

fn write_record(body: &mut Vec<u8>, distance: u32, data: &[u8]) {
    match data.len() / 4 {
        words @ 1..=28 => body.extend(header(words as u32, distance)),
        // The length stands in a word of its own, which it counts.
        _ => {
            body.extend(header(0, distance));
            body.extend((data.len() as u32 + 4).to_ne_bytes());
        }
    }
    body.extend(data);
}

fn header(kind: u32, distance: u32) -> [u8; 4] {
    let both =
        if cfg!(target_endian = "big") { kind << 27 | distance } else { distance << 5 | kind };
    both.to_ne_bytes()
}
