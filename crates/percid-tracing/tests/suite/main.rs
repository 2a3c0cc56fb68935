//! The tests of this crate, in one program: linked once.

mod allocation;
mod chrome;
mod events;
mod panic;
mod signal;
