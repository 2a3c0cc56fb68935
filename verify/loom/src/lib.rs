//! Every interleaving of the pieces of percid that are built on atomics.
//!
//! The pieces are the library's own files, compiled here once more with its atomic types and its
//! unsynchronised cell replaced by those of loom, which runs a test once for every order in which its
//! threads' accesses can take place and every value that a load may return under the memory model. What
//! loom does not know is rseq and membarrier: the protocol of the table has its models in `verify/models`.
//!
//! `cargo test -p percid-loom` explores everything and prints how much that was. Each module of tests has
//! a negative control: the same test over a piece with one thing taken away, which must fail.

#![cfg(test)]

#[path = "../../../crates/percid/src/arena/free_list.rs"]
mod free_list;
#[path = "../../../crates/percid/src/id/once.rs"]
mod once;
#[path = "../../../crates/percid/src/shared_slot.rs"]
mod shared_slot;
#[path = "../../../crates/percid/src/id/try_lock.rs"]
mod try_lock;

mod explore;
mod free_list_tests;
mod once_tests;
mod shared_slot_tests;
mod try_lock_tests;

/// What the library's `sys` offers to these files, in loom's kind.
mod sys {
    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::*;
    }
    pub(crate) mod cell {
        pub(crate) use loom::cell::UnsafeCell;
    }
}
