//! The membership mask of an address space at 120 CPUs: setting the own bit at every switch against
//! testing it first.
//!
//! Published (Linux commit 8f898fbbe5ee, 2013): on a machine of 60 cores and 120 hardware threads,
//! running an OpenMP linpack with more threads than CPUs, the locked instruction that set a bit at
//! every switch took 10 000 to 15 000 cycles, and the scheduler 24 % of all cycles. With a test in
//! front of it: 600 cycles, and 5.5 %.
//!
//! # The model
//!
//! *The line* (`line.rs`): one cache line holds a mask, each address space has one. A CPU that
//! modifies it must own it, so modifications stand in a queue, and each costs the way from the last
//! owner's cache. Clean copies are read by all at once, and each until the next invalidation
//! reaches it.
//!
//! *The threads* (`ready.rs`) of all processes take turns on the CPUs (`simulation.rs`): work, then
//! sleep or wait, while the CPU switches to another thread, to a kernel thread, or idles. A
//! hardware thread that waits for a line leaves its core to its sibling, which then works faster.
//! That is why 24 % of all cycles could be won back and throughput grew by 8 % only. Set always,
//! the line is saturated: a round of N CPUs takes N transfers, whatever the rest takes, and faster
//! siblings merely come back to the queue earlier.
//!
//! *A switch has two branches* ([`MaskPolicy`]). Within one address space, also by way of the idle
//! task or a kernel thread, the page tables stay loaded, and the CPU only makes sure that its bit
//! is set; this is the branch that the published change gave a test. To another address space it
//! sets the bit there by a locked instruction, loads the page tables, and clears its bit where it
//! came from: two modifications of two lines that no test can spare, because what was cleared on
//! leaving is never found set. Loading page tables has a price (`reload_ns`, which contains looking
//! up again what was thrown away). It is also paid within an address space by a CPU that finds its
//! bit clear, because it has missed a flush.
//!
//! *Leaving*: a CPU that is idle, or runs a kernel thread, keeps its bit until a CPU flushes
//! translations. The flush finds it absent and makes it clear its bit, which it sets again when it
//! comes back. In the published run this is all that still moves the line when bits are tested
//! first.
//!
//! *What is compared*: the published latencies are those of sampled accesses, and the line's rank
//! is among "shared misses". So [`Outcome::miss_latency`] takes the accesses that the caches of the
//! own core and the last level behind it could not serve, before and after alike. Of all accesses that is three in four
//! before, and fewer than one in 300 after: the mean over all is 7 cycles then. Other sets of
//! accesses stand beside it, and [`Paper::assumptions`] shows their means.
//!
//! # What it leaves out
//!
//! Barriers of the program, the queues of the scheduler and who of them is preferred, other cache
//! lines, and what the interrupts of flushes take: they are counted. So it says nothing about the
//! line's rank among all lines.

pub mod comparison;
mod line;
mod outcome;
mod paper;
mod parameters;
mod policy;
mod ready;
mod simulation;
mod workload;

pub use line::Source;
pub use outcome::Outcome;
pub use paper::{Assumption, Figures, Paper, Row, figures, paper, sweep};
pub use parameters::{
    Arbitration, PUBLISHED_MACHINE, PUBLISHED_WORKLOAD, Parameters, numbers, set,
};
pub use policy::{Cycles, MaskPolicy};
pub use simulation::simulate;
pub use workload::{Known, NUMBERS, Spread, Workload};
