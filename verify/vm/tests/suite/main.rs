//! The tests of this crate, in one program: linked once.

mod boot;
mod missing;
mod replay;
mod scan_walk;
