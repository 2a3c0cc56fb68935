//! Per-ID memory: the location of an object's shards.
//!
//! # Slots and extents
//!
//! A range of address space is reserved and cut into *slots* of [`STRIDE`] bytes: slot 0 is the
//! shared slot, which no critical section writes to, and slot `k + 1` belongs to ID `k`. An object
//! is an address in slot 0; its shards lie at the same place in every slot, so thousands of
//! counters share the cache lines *within* one ID's memory and never across IDs. Such a range is an
//! *extent*. There is one until a slot of it is full, and up to [`EXTENTS`] of them: since the
//! stride is the same everywhere, an object's address alone leads to its shards, whichever extent
//! it lies in.
//!
//! Slots are opened when IDs come into existence, and each only as far as objects need it, by
//! powers of two. Memory that is open and was never touched costs nothing, unless a program locks
//! its memory (`mlockall`), which fills all open memory. A page is allocated when an ID first
//! touches it, on the node of that CPU. Creating an object takes a pop from a list of freed blocks
//! or an atomic addition, whatever the number of CPUs. Only when the open part has to grow, at most
//! 9 times per extent, it takes a system call for each ID. All of it is lock-free and
//! async-signal-safe. [`frontier`] explains why an ID finds its memory open.
//!
//! Behind the slots of an extent lie 256 KiB of bits (64 KiB on 32 bits), which record the blocks
//! that were [given back](given_back). A page of them is allocated once a block with its bit there
//! was freed.

mod block;
mod extents;
mod free_list;
mod frontier;
mod given_back;
mod is_zero;
mod places;

#[cfg(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
))]
pub(crate) use block::contains;
#[cfg(test)]
#[allow(unused_imports, reason = "for tests of Linux with sections")]
pub(crate) use block::handed_out;
pub(crate) use block::{Block, BlockList, distance, word};
pub use extents::memory_of;
pub(crate) use extents::{open_id, reserved};
#[allow(unused_imports, reason = "only sections and the C interface shift by hand")]
pub(crate) use places::SHIFT;
pub(crate) use places::STRIDE;
