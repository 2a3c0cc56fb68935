//! The engine: CPUs, threads and processes, and what happens to them, event by event.
//!
//! A CPU has a queue of waiting threads and runs one thread at a time. A timer tick interrupts the
//! running thread, and lets the next one run if the slice is over. A thread that wakes runs where
//! it ran last if that CPU is idle, else on an idle one nearby; a CPU that becomes idle takes a
//! waiting thread from the nearest CPU that has one (`scheduler.rs`, `cpus.rs`). Threads execute
//! lists of operations (`operations.rs`); what their bursts cost, see [`crate::cost`].
//!
//! Events at the same time happen in the order in which they were scheduled, and all randomness
//! comes from one generator: the same seed gives the same result on every machine.

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
mod usage;
mod waiting;
mod wheel;

pub use outcome::{ClassTotal, Expense, Outcome, PartOutcome, Scheduling, Share, Span, Throttling};
pub use simulation::{AREA_BYTES, Simulation};
pub use usage::{Gauge, Quiet, Usage};
