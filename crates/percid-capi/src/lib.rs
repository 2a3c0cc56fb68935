//! percid for C and C++.
//!
//! Rust programs use the crate `percid`; what is here is the binary interface, declared for C in
//! `include/percid.h`. That file is generated from the declarations and comments of this crate, so
//! the comments of public items are written for the reader of the header.
//!
//! Every function ends in a return: panics are caught at the border (`barrier`), memory that is not
//! available is an error (`headroom`). What the caller must promise is said once, in the introduction of the
//! header (`cbindgen.toml`), and where a function asks for more.
//!
//! # Safety
//!
//! Every unsafe function says of each of its arguments which of these the caller promises. The
//! header leaves that out: its introduction says the same in C's words. All of it holds for as long
//! as the call lasts.
//!
//! * *An object*: NULL, or the aligned address of a counter or histogram that was initialised as its
//!   type says or by `..._with_source`, has not been moved or copied while another thread used it,
//!   and is changed by these functions only.
//! * *A handle*: NULL, or what a function that creates such an object has stored; also after the
//!   object was destroyed, but no other thread destroys it during the call.
//! * *A result*: NULL, or a snapshot or report that a function of this library has stored and that
//!   was not freed; no other thread changes or frees it.
//! * *A series*: NULL, or what a function for a family has stored, and whose registry was not
//!   destroyed; no other thread destroys it.
//! * *Texts*: NULL, or memory for so many pointers, each of which is NULL or points to a text that ends
//!   in a zero.
//! * *Memory* for so many values: NULL (or anything, where their number is 0), or aligned memory
//!   that may be written and that no other thread uses. It need not be initialised.
//! * *A callback*: NULL, or a function that may be called with the values that its parameter's
//!   documentation names and with the argument named here. It returns, ends its thread, or, except
//!   with musl, throws an exception of C++ or jumps to a frame that is outside of the call.

// Shared libraries with symbol versions, as ELF has them: elsewhere this crate is empty.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
// The header has these comments as they are, and its lists of errors are indented.
#![allow(rustdoc::invalid_rust_codeblocks)]

// The header's order.
pub mod source;

pub mod process;

pub mod activity;
pub mod machine;

pub mod counter;
pub mod histogram;

pub mod stack;

pub mod pool;

pub mod local;

pub mod ring;

pub mod consumer;

pub mod mask;

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
