//! Announcements to race detectors that watch a program in C.
//!
//! A program in Rust is compiled for its detector, which then sees the mutexes of the standard
//! library. `libpercid` is not, but the detector knows the memory of the allocator. So what is
//! allocated by one thread and freed by another is announced, under the mutex, with an address as
//! the key.

#[cfg(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
))]
pub(crate) use percid::capi::{announce_acquire as acquire, announce_release as release};

/// Does nothing: the program is in Rust.
#[cfg(not(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
)))]
pub(crate) fn acquire(_key: usize) {}

/// Does nothing: the program is in Rust.
#[cfg(not(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
)))]
pub(crate) fn release(_key: usize) {}
