//! Every critical section of percid, of Rust and of C, stopped at every instruction by a kernel that
//! the test plays.
//!
//! The sections are the library's own files, compiled here once more. They are given an rseq area,
//! a table and memory of the test's own ([`world`]), of which the real kernel knows nothing, so
//! that it never interferes. The test runs a section up to each of its instructions in turn
//! ([`stepping`]) and does there what the kernel does to a thread that it preempts ([`kernel`]), on
//! the same CPU or with a move to another one, or what another thread does meanwhile. What must be
//! true then is said by a model of each operation in Rust ([`operation`]); `exhaust` tries all.
//!
//! The tests are in `tests/`: the library's files have some of their own, which need the rest of the
//! library.
//!
//! What this cannot show is what the real kernel does, which is the matter of `verify/aborts`, and
//! the orders in which processors of 64-bit Arm and RISC-V make stores and loads visible: those are
//! read off the instructions (`orders`).
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

/// What the sections need of the library's arena.
mod arena {
    pub(crate) const SHIFT: u32 = 24;
}

/// What the sections need of the library's `sys`.
mod sys {
    pub(crate) mod atomic {
        pub(crate) use std::sync::atomic::*;
    }
    pub(crate) mod thread;
}

/// What C's sections find their words by: the table of the C interface, as far as they read it.
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
pub mod world;
