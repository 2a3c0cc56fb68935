//! What the processor and the kernel counted while threads ran: cycles, cache misses, page faults.
//!
//! A [`Counted`] is one turn of a thread on a CPU, from one switch of that CPU to the next, with what
//! was counted in it. [`Origin::counters`](crate::Origin::counters) says what that is.

mod counted;
mod counter;
mod readings;

pub use counted::{Counted, MOST};
pub use counter::Counter;
pub use readings::{Reading, Readings};
