//! The tests of this crate, in one program: linked once.

mod allocation;
mod chrome;
#[cfg(target_os = "linux")]
mod dumps;
mod events;
mod panic;
mod signal;
mod wait;
