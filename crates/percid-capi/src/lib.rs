//! percid for C and C++.
//!
//! Rust programs use the crate `percid`; this crate is the binary interface, declared for C in
//! `include/percid.h`. That file is generated from the declarations and comments of this crate, so
//! the comments of public items are written for the reader of the header.
//!
//! Every function returns: panics are caught at the boundary (`barrier`), and missing memory is an
//! error (`headroom`). The caller's obligations are in the introduction of the header
//! (`cbindgen.toml`), and at the functions that require more.
//!
//! # Safety
//!
//! Every unsafe function names for each of its arguments which of these the caller guarantees. The
//! header leaves that out: its introduction has the same rules in C's terms. All of them hold for
//! the duration of the call.
//!
//! * *An object*: NULL, or the aligned address of a counter or histogram that was initialised as
//!   its type describes or by `..._with_source`, has not been moved or copied while another thread
//!   used it, and is changed by these functions only.
//! * *A handle*: NULL, or a handle that a function that creates such an object has stored; also
//!   after the object was destroyed, but no other thread destroys it during the call.
//! * *A result*: NULL, or a snapshot or report that a function of this library has stored and that
//!   was not freed; no other thread changes or frees it.
//! * *A series*: NULL, or a pointer that a function for a family has stored, and whose registry was
//!   not destroyed; no other thread destroys it.
//! * *Texts*: NULL, or memory for the given number of pointers, each of which is NULL or points to
//!   a NUL-terminated text.
//! * *Memory* for a number of values: NULL (or any pointer, if their number is 0), or aligned
//!   memory that may be written and that no other thread uses. It need not be initialised.
//! * *A callback*: NULL, or a function that may be called with the values that its parameter's
//!   documentation names and with the argument named there. It returns, ends its thread, or, except
//!   with musl, throws a C++ exception or jumps to a frame that is outside of the call.

// Shared libraries with symbol versions need ELF: on other systems this crate is empty.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
// The header contains these comments unchanged, and its lists of errors are indented.
#![allow(rustdoc::invalid_rust_codeblocks)]

// The order of the header.
pub mod source;

pub mod process;

pub mod machine;
pub mod table_stats;

pub mod counter;
pub mod histogram;

pub mod stack;

pub mod pool;

pub mod local;

pub mod ring;

pub mod consumer;

pub mod fence;

pub mod rwlock;

pub mod domain;

pub mod budget;

pub mod mask;

pub mod memory;

pub mod numa;

pub mod metrics;

pub mod interface;

#[cfg(feature = "testing")]
pub mod testing;

mod barrier;
mod callback;
mod copies;
mod destroyed;
mod ends;
mod errno;
mod headroom;
mod list;
mod registry;
mod sized;
mod text;
