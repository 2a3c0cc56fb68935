//! percid for C and C++.
//!
//! Rust programs use the crate `percid`; what is here is the binary interface, declared for C in
//! `include/percid.h`. That file is generated from the declarations and comments of this crate, so
//! the comments of public items are written for the reader of the header.
//!
//! Every function ends in a return: panics are caught at the border (`barrier`), memory that is not
//! available is an error. What the caller must promise is said once, in the introduction of the
//! header (`cbindgen.toml`), and where a function asks for more.

// The header's introduction says what holds for pointers, and these comments are for C programmers.
#![allow(clippy::missing_safety_doc)]
// The header has these comments as they are, and its lists of errors are indented.
#![allow(rustdoc::invalid_rust_codeblocks)]

// The header's order.
pub mod process;

pub mod counter;
pub mod histogram;

pub mod stack;

pub mod pool;

pub mod local;

pub mod ring;

pub mod mask;

pub mod numa;

#[cfg(feature = "testing")]
pub mod testing;

mod barrier;
mod callback;
mod errno;
mod registry;
mod sized;
