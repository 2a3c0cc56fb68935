//! The tests of this crate, in one program: linked once.

mod boot;
mod machines;
mod missing;
mod replay;
mod scan_walk;
