//! The simulation engine: CPUs, threads and processes, advanced event by event.
//!
//! A CPU has a queue of waiting threads and runs one thread at a time. A timer tick interrupts the
//! running thread, and switches to the next one if the slice is over. A thread that wakes runs on
//! its last CPU if that is idle, otherwise on an idle one nearby. A CPU that becomes idle takes a
//! waiting thread from the nearest CPU that has one (`scheduler.rs`, `cpus.rs`). Threads execute
//! lists of operations (`operations.rs`). [`crate::cost`] has the cost of their bursts.
//!
//! Events at the same time happen in the order in which they were scheduled. All randomness comes
//! from one generator, so the same seed gives the same result on every machine.

mod contract;
mod cpus;
mod index;
mod operations;
mod outcome;
mod overhead;
mod process;
mod queue;
mod quota;
mod scheduler;
mod simulation;
mod thread;
mod throttling;
mod usage;
mod waiting;
mod wheel;
mod window;

pub use outcome::{ClassTotal, Expense, Outcome, PartOutcome, Scheduling, Share, Span, Throttling};
pub use simulation::{AREA_BYTES, Simulation};
pub use usage::{Gauge, Quiet, Usage};
