//! The race of Linux 6.4 to 6.18 for concurrency IDs, on real kernels.
//!
//! A run goes through these modules: [`machine`] starts a stock kernel under the emulator, [`stub`]
//! is its debugger (by the [`packet`]s of GDB's remote protocol), and [`place`] finds in the
//! running kernel's code where an agent can be late. [`session`] catches one there while the
//! guest's program does the rest, [`verdict`] interprets the rounds, and [`report`] shows the
//! result. The guest's program is in `guest/`.

pub mod error;
pub mod machine;
pub mod options;
pub mod packet;
pub mod place;
pub mod report;
pub mod session;
pub mod stub;
pub mod verdict;

pub use error::Error;
