//! One shard of a ring, from Rust: writing under its lock, and reading.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use crate::arena::word;
use crate::critical::ring::{Append, DATA, HEAD, NUMBERS, ONE, TAIL, size_of_record};
use crate::id::try_lock::TryLock;

/// Where the lock is for those who write without sections.
const LOCK: usize = HEAD + 8;
/// Where the consumer keeps its position.
const POSITION: usize = 128;
/// Where the consumer keeps the number of the record that it expects next.
const EXPECTED: usize = 136;

/// Numbers come round after this many records.
const COUNT: u64 = 1 << 48;

/// A shard of a ring, in an open slot of the arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shard {
    pub(crate) address: usize,
    pub(crate) capacity: u64,
}

impl Shard {
    /// The lock of those who write without sections.
    pub(crate) fn lock(&self) -> &'static TryLock {
        // SAFETY: the lock lies in an open slot, which stays mapped; it is a 32-bit word, and zero
        // is free.
        unsafe { &*word(self.address + LOCK).cast::<TryLock>() }
    }

    /// Whether there is room for a record. Without the lock it is a hint: the two ends are loaded
    /// one after the other, and if others append and discard in between, the tail may be the later
    /// one. There is room then.
    pub(crate) fn has_room(&self, request: &Append) -> bool {
        let used = self.at(HEAD).load(Relaxed).wrapping_sub(self.at(TAIL).load(Relaxed)) as i64;
        used <= self.capacity as i64 - request.needed as i64
    }

    /// How many bytes to keep when room is made for a record.
    pub(crate) fn worth_keeping(&self, request: &Append) -> u64 {
        self.capacity - request.needed.max(self.capacity / 8)
    }

    /// What the section `append` does. The caller holds the lock and there is room.
    pub(crate) fn append(&self, request: &Append) {
        let head = self.at(HEAD).load(Relaxed);
        let header = self.data(head).load(Relaxed) & NUMBERS as u64;
        self.data(head).store(header | request.length, Relaxed);
        let words = (request.end.addr() - request.bytes.addr()) / 8;
        for index in 0..words {
            // SAFETY: the request has that many whole words, which the record's borrow keeps alive.
            let value = unsafe { request.bytes.cast::<u64>().add(index).read_unaligned() };
            self.data(head + 8 + index as u64 * 8).store(value, Relaxed);
        }
        self.data(head + 8 + words as u64 * 8).store(request.rest, Relaxed);
        self.data(head + request.size).store(header.wrapping_add(ONE), Relaxed);
        self.at(HEAD).store(head + request.size, Release);
    }

    /// What the section `discard` does. The caller holds the lock.
    pub(crate) fn discard(&self, keep: u64) {
        let target = self.at(HEAD).load(Relaxed).wrapping_sub(keep);
        let mut tail = self.at(TAIL).load(Relaxed);
        while target.wrapping_sub(tail) as i64 > 0 {
            tail += size_of_record(self.data(tail).load(Relaxed) % ONE);
        }
        self.at(TAIL).store(tail, Relaxed);
    }

    /// The tail and the head.
    #[cfg(feature = "testing")]
    pub(crate) fn ends(&self) -> (u64, u64) {
        (self.at(TAIL).load(Relaxed), self.at(HEAD).load(Relaxed))
    }

    /// The word of the data at a position.
    fn data(&self, position: u64) -> &'static AtomicU64 {
        self.at(DATA + (position & (self.capacity - 1)) as usize)
    }

    fn at(&self, offset: usize) -> &'static AtomicU64 {
        // SAFETY: the offset lies in the shard, which lies in an open slot; these types have the
        // same layout.
        unsafe { &*word(self.address + offset).cast::<AtomicU64>() }
    }
}

/// The consumer at one shard, from what was there when it came up to what was there then.
#[derive(Debug)]
pub(crate) struct Reading {
    shard: Shard,
    /// The consumer moves the tail.
    keeps_oldest: bool,
    end: u64,
    position: u64,
    expected: u64,
}

/// A record that was copied whole.
#[derive(Debug)]
pub(crate) struct Record<'b> {
    pub(crate) number: u64,
    pub(crate) bytes: &'b [u8],
    /// How many records before it were overwritten.
    pub(crate) skipped: u64,
}

impl Reading {
    pub(crate) fn start(shard: Shard, keeps_oldest: bool) -> Reading {
        Reading {
            shard,
            keeps_oldest,
            // Acquire: the records in front of the head are seen whole.
            end: shard.at(HEAD).load(Acquire),
            position: shard.at(POSITION).load(Relaxed),
            expected: shard.at(EXPECTED).load(Relaxed),
        }
    }

    /// The next record, copied to `buffer`.
    pub(crate) fn next<'b>(&mut self, buffer: &'b mut Vec<u64>) -> Option<Record<'b>> {
        let (number, length) = loop {
            self.skip_overwritten();
            if self.end.wrapping_sub(self.position) as i64 <= 0 {
                return None;
            }
            if let Some(copied) = self.copy_record(buffer) {
                break copied;
            }
        };
        self.position += size_of_record(length as u64);
        let skipped = number.wrapping_sub(self.expected) % COUNT;
        self.expected = (number + 1) % COUNT;
        self.save();
        // SAFETY: the buffer has at least `length` bytes, all initialised.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), length) };
        Some(Record { number, bytes, skipped })
    }

    /// Ends the reading.
    pub(crate) fn finish(self) {
        self.publish_tail();
    }

    /// Where the tail has overtaken the position, what lies between is gone.
    fn skip_overwritten(&mut self) {
        let tail = self.shard.at(TAIL).load(Acquire);
        if tail.wrapping_sub(self.position) as i64 > 0 && !self.keeps_oldest {
            self.position = tail;
        }
    }

    /// Shards the record at the position; `None` if it was overwritten meanwhile.
    fn copy_record(&self, buffer: &mut Vec<u64>) -> Option<(u64, usize)> {
        let header = self.shard.data(self.position).load(Relaxed);
        let length = header % ONE;
        // A header that is torn leads nowhere beyond the ring: it has 16 bits, and the mask does
        // the rest.
        buffer.clear();
        let words = length.div_ceil(8);
        let word = |index| self.shard.data(self.position + 8 + index * 8).load(Relaxed);
        buffer.extend((0..words).map(word));
        self.is_intact().then_some((header / ONE, length as usize))
    }

    /// Whether what was read at the position so far was no record's that came later.
    fn is_intact(&self) -> bool {
        // The loads before are complete when the tail is read.
        fence(Acquire);
        self.keeps_oldest
            || self.shard.at(TAIL).load(Relaxed).wrapping_sub(self.position) as i64 <= 0
    }

    fn save(&self) {
        self.shard.at(POSITION).store(self.position, Relaxed);
        self.shard.at(EXPECTED).store(self.expected, Relaxed);
        // Not for every record: each time takes the line away from the writers.
        let free = self.position.wrapping_sub(self.shard.at(TAIL).load(Relaxed));
        if free >= self.shard.capacity / 4 {
            self.publish_tail();
        }
    }

    fn publish_tail(&self) {
        if self.keeps_oldest {
            // Release: what was read is read before writers reuse it.
            self.shard.at(TAIL).store(self.position, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 1024;

    /// A shard whose ends are these.
    fn with_ends(head: u64, tail: u64) -> (Vec<AtomicU64>, Shard) {
        let words = (DATA + CAPACITY as usize) / 8;
        let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let shard = Shard { address: memory.as_ptr().expose_provenance(), capacity: CAPACITY };
        shard.at(HEAD).store(head, Relaxed);
        shard.at(TAIL).store(tail, Relaxed);
        (memory, shard)
    }

    #[test]
    fn room_is_what_the_ends_leave_even_if_they_are_of_different_times() {
        let request = Append::new(&[0; 8], CAPACITY).expect("a record that fits");
        for (head, tail, expected) in [
            (0, 0, true),
            (CAPACITY, 0, false),
            (CAPACITY, CAPACITY, true),
            // The tail was loaded after others had appended and discarded.
            (64, 128, true),
            (u64::MAX - 7, 8, true),
            (8, u64::MAX - 7, true),
            (CAPACITY - 8, u64::MAX - 7, false),
        ] {
            let (_memory, shard) = with_ends(head, tail);
            assert_eq!(shard.has_room(&request), expected, "head {head}, tail {tail}");
        }
    }
}
