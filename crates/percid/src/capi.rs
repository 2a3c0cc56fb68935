//! What the C interface needs of this crate beyond its public face.

use std::fmt;
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::arena;
use crate::counter::Counter;
use crate::critical::fast_path::{FAST_PATH, FastPath};
use crate::critical::ring::{Append, DATA, HEAD, LENGTH_BITS, NUMBERS, ONE, TAIL};
use crate::handle;
use crate::histogram::Histogram;
use crate::local::CLOSED;
pub use crate::local::HeldByCaller;
use crate::sys::{holder, memory, preserving_errno, race_detector, stderr};

/// Where the words are that critical sections read.
pub const FAST_PATH_WORDS: *const () = (&raw const FAST_PATH).cast();

/// Whether the word of an object names memory that is not this copy's: another copy of percid in the
/// process has made it. Of an object without memory nobody can tell.
pub fn is_foreign(word: usize) -> bool {
    handle::block_of(word).is_some_and(|block| !arena::contains(block))
}

/// Drops a counter and makes it a new one. `false` if its memory was given back before, through a
/// copy of its word, and has no new owner yet: then it stays where it is.
pub fn destroy_counter(counter: &mut Counter) -> bool {
    counter.give_back()
}

/// As [`destroy_counter`].
pub fn destroy_histogram(histogram: &mut Histogram) -> bool {
    histogram.give_back()
}

/// Writes `percid: message` as one line to standard error. Async-signal-safe as far as formatting
/// the message is.
pub fn say(message: fmt::Arguments<'_>) {
    preserving_errno(|| stderr::say(message));
}

/// A number that this process has, and none of its ancestors and children; in another PID namespace
/// too, where the kernel's numbers begin anew. (Before Linux 4.14 it is the kernel's.)
/// Async-signal-safe.
pub fn process() -> u64 {
    holder::process()
}

/// Maps zeroed memory, which stays mapped. LeakSanitizer takes pointers in it for uses.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    memory::map(bytes)
}

/// Whether a race detector watches the process.
pub fn is_watched() -> bool {
    race_detector::is_present()
}

/// Announces to race detectors that the lock of a [`Local`](crate::Local)'s value is about to be
/// released, by a plain store.
#[inline]
pub fn announce_release(lock: *const i64) {
    race_detector::release(lock.addr());
}

/// What the macros of the critical sections name, for those who make C's sections of them.
pub const SECTION_NUMBERS: [(&str, i64); 19] = [
    ("area", offset_of!(FastPath, area) as i64),
    ("table", offset_of!(FastPath, table) as i64),
    ("kernel_limit", offset_of!(FastPath, kernel_limit) as i64),
    ("SHIFT", arena::SHIFT as i64),
    ("CLOSED", CLOSED as i64),
    ("HEAD", HEAD as i64),
    ("TAIL", TAIL as i64),
    ("DATA", DATA as i64),
    ("LENGTH_BITS", LENGTH_BITS as i64),
    ("ONE", ONE as i64),
    ("NUMBERS", NUMBERS),
    ("bytes", offset_of!(Append, bytes) as i64),
    ("end", offset_of!(Append, end) as i64),
    ("rest", offset_of!(Append, rest) as i64),
    ("length", offset_of!(Append, length) as i64),
    ("size", offset_of!(Append, size) as i64),
    ("needed", offset_of!(Append, needed) as i64),
    ("capacity", offset_of!(Append, capacity) as i64),
    ("mask", offset_of!(Append, mask) as i64),
];
