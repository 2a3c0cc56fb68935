//! The C and C++ interface as its users meet it: installed by `percid-install`, found by
//! pkg-config, compiled by gcc and clang, linked in every way, and run.
//!
//! At least one C compiler, pkg-config and binutils are needed; what else is missing is skipped
//! with a line that says so.
//!
//! A selection of all that can be combined is tried, see `selection.rs` and `matrix.rs`. What has Cargo
//! build the library once more is ignored by default.

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
