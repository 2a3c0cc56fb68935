//! The tests of this crate, in one program: linked once.

mod scrapes;
mod share;
