//! The tests of this crate, in one program: linked once.

mod advice_and_pictures;
mod command;
mod program;
mod recording;
mod second_recorder;
mod top;
