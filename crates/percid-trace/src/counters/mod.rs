//! Counter values of the processor and the kernel while threads ran: cycles, cache misses, page
//! faults.
//!
//! A [`Counted`] is one turn of a thread on a CPU, from one switch of that CPU to the next, with
//! its counter values. [`Origin::counters`](crate::Origin::counters) has the names of the counters.

mod counted;
mod counter;
mod readings;

pub use counted::{Counted, MAX_COUNTERS};
pub use counter::Counter;
pub use readings::{Reading, Readings};
