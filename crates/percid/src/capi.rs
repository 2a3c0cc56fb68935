//! Functions for the C interface beyond the crate's public interface.

use std::fmt;
use std::mem::offset_of;
use std::ptr::NonNull;

use crate::arena;
use crate::counter::Counter;
use crate::critical::fast_path::{FAST_PATH, FastPath};
use crate::critical::ring::{Append, DATA, HEAD, LENGTH_BITS, NUMBERS, ONE, TAIL};
use crate::critical::words::{CopyRequest, READY};
use crate::handle;
use crate::histogram::Histogram;
use crate::local::CLOSED;
pub use crate::local::visit::HeldByCaller;
pub use crate::per_id::untyped::{Form, Prepare, Untyped, UntypedPerId, link};
use crate::sys::{holder, memory, preserving_errno, race_detector, stderr};

/// The address of the words that critical sections read.
pub const FAST_PATH_WORDS: *const () = (&raw const FAST_PATH).cast();

/// Returns `true` if the word of an object names memory that does not belong to this copy of
/// libpercid: another copy in the process has made it. For an object without memory that is not
/// known, and the result is `false`.
pub fn is_foreign(word: usize) -> bool {
    handle::block_of(word).is_some_and(|block| !arena::contains(block))
}

/// Drops a counter and makes it a new one. Returns `false` if its memory was freed before, through
/// a copy of its word, and has no new owner yet: then the counter is unchanged.
pub fn destroy_counter(counter: &mut Counter) -> bool {
    counter.give_back()
}

/// Drops a histogram and makes it a new one, like [`destroy_counter`].
pub fn destroy_histogram(histogram: &mut Histogram) -> bool {
    histogram.give_back()
}

/// Writes `percid: message` as one line to standard error. Async-signal-safe if formatting the
/// message is.
pub fn say(message: fmt::Arguments<'_>) {
    preserving_errno(|| stderr::say(message));
}

/// Returns a number that identifies this process among its ancestors and children, also in another
/// PID namespace, where the kernel's numbers begin again. (Before Linux 4.14 it is the kernel's
/// number.) Async-signal-safe.
pub fn process() -> u64 {
    holder::process()
}

/// Maps zeroed memory, which stays mapped. LeakSanitizer counts pointers in it as uses.
pub fn map(bytes: usize) -> Option<NonNull<u8>> {
    memory::map(bytes)
}

/// Returns `true` if the process runs under a race detector.
pub fn is_watched() -> bool {
    race_detector::is_present()
}

/// Announces to race detectors that everything this thread did so far precedes what other threads do
/// after an [`announce_acquire`] with this key, an address: that of a lock, which is released next.
#[inline]
pub fn announce_release(key: usize) {
    race_detector::release(key);
}

/// Announces the counterpart of [`announce_release`].
#[inline]
pub fn announce_acquire(key: usize) {
    race_detector::acquire(key);
}

/// The constants in the macros of the critical sections, for generating the sections of C programs.
pub const SECTION_NUMBERS: [(&str, i64); 26] = [
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
    ("READY", READY),
    ("from_end", offset_of!(CopyRequest, from_end) as i64),
    ("start", offset_of!(CopyRequest, start) as i64),
    ("words_end", offset_of!(CopyRequest, words_end) as i64),
    ("to", offset_of!(CopyRequest, to) as i64),
    ("expected", offset_of!(CopyRequest, expected) as i64),
    ("new", offset_of!(CopyRequest, new) as i64),
];
