//! Every critical section of percid, of Rust and of C, stopped at every instruction by a kernel
//! that the test simulates.
//!
//! The sections are the library's own files, compiled here once more. They are given an rseq area,
//! a table and memory of the test's own ([`world`]), which the real kernel does not use, so that it
//! never interferes. The test runs a section up to each of its instructions in turn ([`stepping`]).
//! There it does the kernel's work of a preemption ([`kernel`]), on the same CPU or with a move to
//! another one, or another thread's work. A model of each operation in Rust ([`operation`]) defines
//! the required result; `exhaust` tries all.
//!
//! The tests are in `tests/`: the library's files have some of their own, which need the rest of the
//! library.
//!
//! This cannot test the real kernel, which `verify/aborts` does, nor the orders in which processors
//! of 64-bit Arm and RISC-V make stores and loads visible: those are derived from the instructions
//! (`orders`).
#![cfg(not(test))]
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]

#[macro_use]
#[path = "../../../crates/percid/src/architectures.rs"]
#[allow(dead_code, reason = "only the sections are used here")]
mod architectures;
#[path = "../../../crates/percid/src/critical/mod.rs"]
#[allow(dead_code, unused_imports, reason = "only the sections are used here")]
mod critical;

/// The part of the library's arena that the sections need.
mod arena {
    pub(crate) const SHIFT: u32 = 24;
}

/// The part of the library's `sys` that the sections need.
mod sys {
    pub(crate) mod atomic {
        pub(crate) use std::sync::atomic::*;
    }
    pub(crate) mod thread;
}

/// The table of the C interface, as far as C's sections read it, to find their words.
#[repr(C)]
struct Table {
    opaque: [usize; 2],
    fast_path: &'static critical::fast_path::FastPath,
}

#[unsafe(export_name = "percid_interface_1")]
#[used]
static TABLE: Table = Table { opaque: [0; 2], fast_path: &critical::FAST_PATH };

pub mod acquire;
pub mod add;
pub mod add_float;
pub mod append;
pub mod controls;
mod descriptors;
pub mod discard;
pub mod exhaust;
pub mod kernel;
pub mod operation;
#[cfg(target_arch = "aarch64")]
#[path = "orders/aarch64.rs"]
pub mod orders;
#[cfg(target_arch = "riscv64")]
#[path = "orders/riscv64.rs"]
pub mod orders;
mod ring;
pub mod stack;
pub mod stepping;
pub mod tally;
pub mod words;
pub mod world;
