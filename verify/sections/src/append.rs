//! `append`, in Rust and as C programs have it inline.

use std::ffi::{c_char, c_int};

use crate::critical::by_mark;
use crate::critical::ring::{Append as Request, HEAD};
use crate::exhaust;
use crate::operation::{Language, Operation};
use crate::ring::{CAPACITY, data, forget_free_part, head, shard, size, tail};
use crate::world::Shard;

unsafe extern "C" {
    fn percid_inline_append(word: u64, bytes: *const c_char, length: u64, capacity: u64) -> c_int;
}

pub(crate) struct Append<'a> {
    language: Language,
    record: &'a [u8],
    tail: u64,
    before: &'a [u64],
}

impl Append<'_> {
    fn request(&self) -> Request {
        Request::new(self.record, CAPACITY).expect("a record that fits")
    }
}

impl Operation for Append<'_> {
    fn call(&self, word: usize) -> Option<u64> {
        // SAFETY: the word is one of the test's world, which has set all that sections read.
        let done = unsafe {
            match self.language {
                Language::Rust => {
                    let request = self.request();
                    by_mark!(word, append(&request), else false)
                }
                Language::C => {
                    let (bytes, length) = (self.record.as_ptr(), self.record.len() as u64);
                    percid_inline_append(word as u64, bytes.cast(), length, CAPACITY) != 0
                }
            }
        };
        done.then_some(0)
    }

    fn shard(&self, slot: usize) -> Shard {
        shard(slot, self.tail, self.before)
    }

    fn model(&self, shard: &mut Shard) -> Option<u64> {
        let (head, length) = (head(shard), self.record.len() as u64);
        if head - tail(shard) + size(length) + 8 > CAPACITY {
            return None;
        }
        let number = shard[data(head)] >> 16;
        shard[data(head)] = number << 16 | length;
        for (index, bytes) in self.record.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            shard[data(head + 8 + 8 * index as u64)] = u64::from_le_bytes(word);
        }
        shard[data(head + size(length))] = (number + 1) << 16;
        shard[HEAD / 8] = head + size(length);
        Some(0)
    }

    fn forget_free_parts(&self, shard: &mut Shard) {
        forget_free_part(shard);
    }
}

/// Lengths with and without a rest, none, and the longest.
const LENGTHS: [usize; 7] = [0, 3, 8, 16, 23, 40, 112];
/// At the beginning, somewhere in a later lap, and just before the end: tail, and the records in
/// front.
const PLACES: [(u64, &[u64]); 3] =
    [(0, &[]), (7 * CAPACITY + 64, &[24, 5]), (3 * CAPACITY - 64, &[16, 9])];

/// An operation for tests of the section itself.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const SHORT: Append<'static> =
    Append { language: Language::Rust, record: b"short", tail: 0, before: &[] };

fn record() -> Vec<u8> {
    (1..=200).collect()
}

/// Tests without a record, and over the end of the ring; and everywhere in the ring, from every
/// offset in a word.
fn append(language: Language) {
    let record = record();
    let at = |length: usize, (tail, before)| {
        let record = &record[..length];
        Append { language, record, tail, before }
    };
    let runs = exhaust::all(&at(0, PLACES[0])) + exhaust::all(&at(23, PLACES[2]));
    for length in LENGTHS {
        PLACES.into_iter().for_each(|place| exhaust::briefly(&at(length, place)));
        for from in 1..8 {
            let (record, (tail, before)) = (&record[from..from + length], PLACES[0]);
            exhaust::briefly(&Append { language, record, tail, before });
        }
    }
    append_in_the_last_room(language);
    append_reads_nothing_behind_the_record(language);
    println!("{runs} runs");
}

/// Tests exactly as much as is free, and eight bytes more.
fn append_in_the_last_room(language: Language) {
    let record = record();
    let before = [112, 112, 112, 48];
    let used: u64 = before.into_iter().map(size).sum();
    let fits = (CAPACITY - used - 16) as usize;
    let tail = 5 * CAPACITY + 8;
    exhaust::briefly(&Append { language, record: &record[..fits], tail, before: &before });
    let too_long = Append { language, record: &record[..fits + 1], tail, before: &before };
    assert_eq!(too_long.model(&mut too_long.shard(0)), None);
    exhaust::all(&too_long);
}

/// Tests that nothing after a record is read: it may be the last of a mapping.
fn append_reads_nothing_behind_the_record(language: Language) {
    const PAGE: usize = 4096;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping of two pages, the second of which is closed.
    let page = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let pages = libc::mmap(std::ptr::null_mut(), 2 * PAGE, access, flags, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(pages.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
        std::slice::from_raw_parts_mut(pages.cast::<u8>(), PAGE)
    };
    page.iter_mut().zip(0..).for_each(|(byte, number): (&mut u8, u64)| *byte = number as u8);
    for length in LENGTHS {
        let (tail, before) = PLACES[0];
        exhaust::briefly(&Append { language, record: &page[PAGE - length..], tail, before });
    }
}

/// Tests the section of the library.
pub fn append_in_rust() {
    append(Language::Rust);
}

/// Tests the section of C programs.
pub fn append_in_c() {
    append(Language::C);
}
