//! The tests of this crate, in one program: linked once.

mod controls;
mod own_structures;
mod reports;
