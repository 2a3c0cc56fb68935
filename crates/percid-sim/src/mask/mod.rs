//! Model of an address space's membership mask on 120 CPUs: setting the own bit at every switch,
//! compared with testing it first.
//!
//! Published (Linux commit 8f898fbbe5ee, 2013): a machine of 60 cores and 120 hardware threads ran
//! an OpenMP linpack with more threads than CPUs. The locked instruction that set a bit at every
//! switch took 10 000 to 15 000 cycles, and the scheduler took 24 % of all cycles. With a test in
//! front of it: 600 cycles, and 5.5 %.
//!
//! # The model
//!
//! *The line* (`line.rs`): one cache line holds a mask; each address space has one. A CPU must own
//! the line to modify it. So modifications wait in a queue, and each costs the transfer from the
//! last owner's cache. All CPUs can read clean copies at the same time, each until the next
//! invalidation reaches it.
//!
//! *The threads* (`ready.rs`) of all processes take turns on the CPUs (`simulation.rs`). A thread
//! works, then sleeps or waits, while the CPU switches to another thread or to a kernel thread, or
//! idles. A hardware thread that waits for a line leaves its core to its sibling, which then works
//! faster. For this reason, 24 % of all cycles could be saved, but the throughput grew by 8 % only.
//! If bits are always set, the line is saturated: a round of N CPUs takes N transfers, however long
//! the rest takes. Faster siblings only return to the queue earlier.
//!
//! *A switch has two branches* ([`MaskPolicy`]). Within one address space, also through the idle
//! task or a kernel thread, the page tables stay loaded. The CPU only ensures that its bit is set;
//! the published change added a test to this branch. On a switch to another address space, the CPU
//! sets its bit there by a locked instruction. It loads the page tables, and clears its bit in the
//! old mask. These are two modifications of two lines. No test can avoid them, because a bit that was
//! cleared on leaving is never found set. Loading page tables has a price (`reload_ns`, including
//! the lookups of discarded translations). A CPU also pays it within an address space if its bit is
//! clear, because it has missed a flush.
//!
//! Other policies implement [`BitPolicy`]. The simulation checks the contract of every policy.
//!
//! *Leaving*: a CPU that is idle, or runs a kernel thread, keeps its bit until a CPU flushes
//! translations. The flush makes it clear its bit, which it sets again when it returns. In the
//! published run, nothing else moves the line if bits are tested first.
//!
//! *Compared values*: the published latencies are those of sampled accesses, and the line's rank is
//! among "shared misses". So [`Outcome::miss_latency`] covers the accesses that neither the own
//! core's caches nor its last-level cache could serve, before and after alike. These are three in
//! four of all accesses before, and fewer than one in 300 after; the mean over all accesses is 7
//! cycles then. [`Paper::assumptions`] shows the means of other sets of accesses.
//!
//! # Limits of the model
//!
//! The model leaves out barriers of the program, the scheduler's queues and priorities, and other
//! cache lines. It counts the interrupts of flushes, but not their duration. So it gives no rank of
//! the line among all lines.

pub mod comparison;
mod contract;
mod inputs;
mod left_out;
mod line;
mod outcome;
mod paper;
mod parameters;
mod policy;
mod ready;
mod simulation;
mod workload;

pub use contract::{MaskStep, MaskViolation};
pub use inputs::MaskInputs;
pub use left_out::left_out;
pub use line::Source;
pub use outcome::Outcome;
pub use paper::{Assumption, Paper, PaperFigures, PublishedRow, figures, paper, sweep};
pub use parameters::{
    Arbitration, PUBLISHED_MACHINE, PUBLISHED_WORKLOAD, Parameters, numbers, set,
};
pub use policy::{BitPolicy, Cycles, Join, MaskPolicy};
pub use simulation::simulate;
pub use workload::{Known, NUMBERS, Spread, Workload};
