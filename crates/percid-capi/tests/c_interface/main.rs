//! The C and C++ interface from the users' side: installed by `percid-install`, found by
//! pkg-config, compiled by gcc and clang, linked in every way, and run.
//!
//! At least one C compiler, pkg-config and binutils are needed. Tests of other missing tools are
//! skipped with a message.
//!
//! A selection of all combinations is tested, see `selection.rs` and `matrix.rs`. Tests for which
//! Cargo builds the library again are ignored by default.

mod cmake;
mod copies;
mod correctness;
mod ends;
mod examples;
mod exports;
mod header;
mod inline_add;
mod installation;
mod installer;
#[cfg(target_arch = "x86_64")]
mod interruption;
mod machine_code;
mod matrix;
mod metrics;
mod misuse;
mod module;
mod musl;
mod other_architectures;
mod parity;
mod pretended_nodes;
mod promises;
mod readme;
mod sanitizers;
mod sections;
mod selection;
mod toolchain;
mod unloading;
mod wrapper;
