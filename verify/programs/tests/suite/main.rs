//! The tests of this crate, in one program: linked once.

mod id_steps;
mod programs;
