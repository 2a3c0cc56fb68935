//! Check for available memory before it is needed. If an allocation of the Rust standard library
//! fails, it ends the process with its own message. So functions that allocate check first, and
//! return -ENOMEM.
//!
//! The checked memory is not reserved: if threads compete for the last memory, the process may
//! still end.

use std::ffi::c_int;
use std::hint::black_box;

/// More bytes than any function needs at once from the C library's heap, except for amounts that
/// grow with the number of mappings and threads. They are few enough to be allocated from the heap,
/// which keeps freed memory for reuse. For more, the C libraries would map and unmap memory.
const BYTES: usize = 120 * 1024;

/// # Errors
///
/// Returns `-ENOMEM` if there is not enough memory for a function's own needs.
pub(crate) fn ask() -> Result<(), c_int> {
    // SAFETY: any number of bytes may be requested. (Without `black_box` the compiler would remove
    // both calls.)
    let memory = black_box(unsafe { libc::malloc(BYTES) });
    // SAFETY: the pointer was allocated just now, or is NULL.
    unsafe { libc::free(memory) };
    if memory.is_null() { Err(-libc::ENOMEM) } else { Ok(()) }
}
