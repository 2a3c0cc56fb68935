//! One shard of a ring, from Rust code: writing under its lock, and reading.
//!
//! # Purpose of the memory orders
//!
//! *Records are seen whole*: the head is stored with release order after all stores of the record,
//! and the consumer loads it with acquire order.
//!
//! *Writers do not touch what is being read* ([`DropNewest`](crate::Overflow::DropNewest)): the
//! tail is stored with release order after the loads of the record, and writers load it with
//! acquire order. In sections the branch on the tail provides that order: no store behind the
//! branch is executed before it.
//!
//! *A torn copy is detected* ([`OverwriteOldest`](crate::Overflow::OverwriteOldest)): a release
//! fence stands between the store to the tail and the stores into the freed part, an acquire fence
//! between the consumer's loads of the data and of the tail. The first is part of appending and not
//! of discarding, because one writer may discard and another, later, append. The latter has seen
//! the tail by then, but only its own fence makes the tail visible to a consumer that sees its
//! words.
//!
//! The tail that the consumer skips to needs no order: all records in front of `end` were seen when
//! the head was loaded, and after the copy the consumer checks that they are still there.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom`.

use crate::arena::word;
use crate::critical::ring::{Append, DATA, HEAD, NUMBERS, ONE, TAIL, Word, size_of_record};
use crate::id::try_lock::TryLock;
use crate::sys::atomic::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Offset of the lock for threads that write without sections.
const LOCK: usize = HEAD + 8;
/// Offset of the consumer's position.
const POSITION: usize = 128;
/// Offset of the number of the record that the consumer expects next.
const EXPECTED: usize = 136;

/// Number of records after which the numbers repeat.
const COUNT: u64 = 1 << 48;

/// A shard of a ring, in an open slot of the arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shard {
    pub(crate) address: usize,
    pub(crate) capacity: u64,
}

impl Shard {
    /// Returns the lock for threads that write without sections.
    pub(crate) fn lock(&self) -> &'static TryLock {
        // SAFETY: the lock lies in an open slot, which stays mapped; it is a 32-bit word, and zero
        // is free.
        unsafe { &*word(self.address + LOCK).cast::<TryLock>() }
    }

    /// Returns `true` if there is room for a record. Without the lock it is a hint, if other
    /// threads append and discard during the call. But if there was room the whole time, it returns
    /// `true`.
    pub(crate) fn has_room(&self, request: &Append) -> bool {
        let (tail, head) = self.ends();
        head.wrapping_sub(tail) as i64 <= self.capacity as i64 - request.needed as i64
    }

    /// Returns the number of bytes to keep when room is made for a record.
    pub(crate) fn worth_keeping(&self, request: &Append) -> u64 {
        self.capacity - request.needed.max(self.capacity / 8)
    }

    /// Appends under the lock; `None` if another thread has it. Returns `true` if there was room,
    /// or room was made.
    pub(crate) fn append_locked(&self, request: &Append, overwrite: bool) -> Option<bool> {
        let _lock = self.lock().try_lock()?;
        if !self.has_room(request) {
            if !overwrite {
                return Some(false);
            }
            self.discard(self.worth_keeping(request));
        }
        self.append(request);
        Some(true)
    }

    /// Appends like the section `append`. The caller holds the lock and there is room.
    pub(crate) fn append(&self, request: &Append) {
        fence(Release);
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

    /// The effect of the section `discard`. The caller holds the lock.
    pub(crate) fn discard(&self, keep: u64) {
        let target = self.at(HEAD).load(Relaxed).wrapping_sub(keep);
        let mut tail = self.at(TAIL).load(Relaxed);
        while target.wrapping_sub(tail) as i64 > 0 {
            tail += size_of_record(self.data(tail).load(Relaxed) % ONE);
        }
        self.at(TAIL).store(tail, Relaxed);
    }

    /// Returns the tail and the head. The tail is loaded after the head, so it may be newer. Then
    /// the used part may seem smaller than it ever was, but never larger.
    pub(crate) fn ends(&self) -> (u64, u64) {
        let head = self.at(HEAD).load(Acquire);
        (self.at(TAIL).load(Acquire), head)
    }

    /// Returns the word of the data at a position.
    fn data(&self, position: u64) -> &'static Word {
        self.at(DATA + (position & (self.capacity - 1)) as usize)
    }

    pub(crate) fn at(&self, offset: usize) -> &'static Word {
        // SAFETY: the offset lies in the shard, which lies in an open slot; these types have the
        // same layout.
        unsafe { &*word(self.address + offset).cast::<Word>() }
    }
}

/// The consumer's reading of one shard, up to the end at its start.
#[derive(Debug)]
pub(crate) struct Reading {
    shard: Shard,
    /// `true` if the consumer moves the tail.
    keeps_oldest: bool,
    end: u64,
    position: u64,
    expected: u64,
}

/// A record that was copied completely.
#[derive(Debug)]
pub(crate) struct Record<'b> {
    pub(crate) number: u64,
    pub(crate) bytes: &'b [u8],
    /// Number of overwritten records before it.
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

    /// Returns the next record, copied to `buffer`.
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
        self.expected = number + 1;
        self.save();
        Some(Record { number, bytes: bytes_of(buffer, length), skipped })
    }

    /// Ends the reading.
    pub(crate) fn finish(self) {
        self.publish_tail();
    }

    /// Skips the records that were overwritten: those between the position and a tail that has
    /// overtaken it.
    fn skip_overwritten(&mut self) {
        let tail = self.shard.at(TAIL).load(Relaxed);
        if tail.wrapping_sub(self.position) as i64 > 0 && !self.keeps_oldest {
            self.position = tail;
        }
    }

    /// Copies the record at the position; `None` if it was overwritten during the copy.
    fn copy_record(&self, buffer: &mut Vec<u64>) -> Option<(u64, usize)> {
        let header = self.shard.data(self.position).load(Relaxed);
        let length = header % ONE;
        // A torn header does not lead outside the ring: the length has 16 bits, and the mask bounds
        // the positions.
        buffer.clear();
        let words = length.div_ceil(8);
        let word = |index| self.shard.data(self.position + 8 + index * 8).load(Relaxed);
        buffer.extend((0..words).map(word));
        self.is_intact().then_some((header / ONE, length as usize))
    }

    /// Returns `true` if no later record has overwritten what was read at the position so far.
    fn is_intact(&self) -> bool {
        // The loads before this complete before the load of the tail.
        fence(Acquire);
        self.keeps_oldest
            || self.shard.at(TAIL).load(Relaxed).wrapping_sub(self.position) as i64 <= 0
    }

    fn save(&self) {
        self.shard.at(POSITION).store(self.position, Relaxed);
        self.shard.at(EXPECTED).store(self.expected, Relaxed);
        // Not for every record: each store takes the cache line from the writers.
        let free = self.position.wrapping_sub(self.shard.at(TAIL).load(Relaxed));
        if free >= self.shard.capacity / 4 {
            self.publish_tail();
        }
    }

    fn publish_tail(&self) {
        if self.keeps_oldest {
            // Release: the loads of the records come before writers reuse their memory.
            self.shard.at(TAIL).store(self.position, Release);
        }
    }
}

/// Returns the first `length` bytes of a record that was copied.
pub(crate) fn bytes_of(buffer: &[u64], length: usize) -> &[u8] {
    assert!(length <= size_of_val(buffer));
    // SAFETY: the buffer has that many bytes, all initialised.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), length) }
}
