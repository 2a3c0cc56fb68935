//! The tests of this crate, in one program: linked once.

mod covers;
mod explorer;
mod modes;
mod verdicts;
