//! Memory, before it is needed. The Rust standard library ends the process where it gets none, in words
//! of its own. So functions that allocate ask first, and answer -ENOMEM.
//!
//! What was asked for is not kept: where threads compete for the last memory, the process may still end.

use std::ffi::c_int;
use std::hint::black_box;

/// More than any function needs at once of the C library's heap, but for what grows with the number of
/// mappings and threads; few enough bytes that the heap gets them, where what is given back stays at
/// hand (more, and the C libraries map and unmap it).
const BYTES: usize = 120 * 1024;

/// # Errors
///
/// `-ENOMEM` if there is not enough memory for what a function needs for itself.
pub(crate) fn ask() -> Result<(), c_int> {
    // SAFETY: any number of bytes may be asked for. (The compiler would take both calls away.)
    let memory = black_box(unsafe { libc::malloc(BYTES) });
    // SAFETY: got just now, or NULL.
    unsafe { libc::free(memory) };
    if memory.is_null() { Err(-libc::ENOMEM) } else { Ok(()) }
}
