//! Proof that percid's critical sections survive an interruption at every instruction, and checks
//! of what the compiler and the linker make of them.
//!
//! # Why not simply single-step
//!
//! A debugger that steps through a critical section aborts it at the first step: the stop takes the
//! thread off its CPU. So each instruction gets a run of its own, in two ways. A *trap* is planted
//! at the instruction; the stop itself is the interruption, to which the tracer adds a signal,
//! another CPU or a theft before it lets the thread run on. Or a *jump to itself* is planted: the
//! thread keeps running with its instruction pointer at this very instruction, until a fence, a
//! theft, a migration or a preemption from outside takes effect, with no trap in the play. Every
//! abort pad holds a trap, so that the tracer sees every abort there is, the intended ones and
//! those that must not be.
//!
//! The sections are found in the program itself, by its section of descriptors.
//!
//! # What is interrupted
//!
//! All eight operations of either source, wherever the compiler has put their sections: in the fast
//! paths and out of line. The subject's operations come through all of them, and the suite says
//! which instruction none of them came to.
//!
//! | section | operations of the subject that come through it |
//! |---|---|
//! | add | counters: `Static`, `Reference`, `Twice`, `Handler`; histograms: `Record`, `RecordMany`; `AppendLost` (a ring's count of what it lost) |
//! | add a float | `AddFloat` |
//! | tally | `Tally`, `TallyMany` |
//! | acquire | `With`, `WithFirst`; activation of a stack's part: `PushFirst`, `PopFirst` |
//! | push | `Push`, `PushFull`, `PushFirst`, and the batches of `PopEmpty`, `PopFirst` |
//! | pop | `Pop`, `PopEmpty`, `PopFirst`, and the batch of `PushFull` |
//! | append | `Append`, `AppendWrapping`, `AppendShort`, `AppendFull`, `AppendLost` |
//! | discard | `AppendFull` |
//!
//! For every operation: each instruction of each section that it comes to gets each injection; each
//! place in front and behind the commit gets those that make sense there; each pair of instructions
//! of the first two tries, and of the first try and the handler that interrupts it, gets some; and
//! all tries are aborted. Sections that lie on a slow path are reached by aborting what comes
//! before.
//!
//! # What must be true afterwards
//!
//! Each one that did something in a round (the operation, the handler, a thief) has an amount of
//! its own, and the subject tells where each of them took place: the amounts of a counter's and a
//! histogram's copies as they are; for the others, the ID in whose copy an item or a record was
//! found, or from which it was popped. Each must have taken place exactly once, the operation in
//! one place, and that must be the right one. Besides, the subject looks for damage with a ledger
//! of all items of the round (`ledger.rs`): everything that was pushed has come out once or is
//! inside once; records come out whole, once, with numbers that leave out exactly as many as the
//! ring counts as lost; a value that is lent out has one owner, and its lock comes free; a
//! histogram's other buckets stay empty, and so do those of buckets, whose sum is that of their values. Thieves use the copy of the ID that they have stolen as a
//! CPU with that ID would: they push, pop and append there, and take a local's lock and keep it
//! until the round is over.
//!
//! # The injections of the kernel's own tests
//!
//! The kernel's self-tests of restartable sequences put delay loops at nine points, and yields,
//! sleeps and signals, into their operations: the increment, a lock, lists, buffers of pointers and
//! of copied bytes, and membarrier. Here the points are all instructions, in front, inside and
//! behind, the operations are the corresponding ones (counter, local, stack, ring, seizure), and
//! the injections are these:
//!
//! | self-test | here ([`injection::Injection`]) |
//! |---|---|
//! | delay loops | `Delay`, at every instruction inside; then a stop |
//! | with `sched_yield` | `Stop` (off the CPU and on again) and `Preempt` |
//! | with `poll` (sleep) | `Sleep` |
//! | with a signal (kill) | `Signal`, with a handler that does the same to the same structure; `MoveAndSignal` |
//! | (migration by chance) | `Move`, `MoveRunning` |
//! | membarrier against a section | `Fence`, `Steal`, `StealAndReturn`, `StealWhileStopped`; control `StealWithoutFence` |
//! | membarrier against those who take something away | `Visit` (drain, poll), `VisitWhileStopped`; control `VisitWithoutFence` |
//!
//! # What is not interrupted
//!
//! * A loop inside a section (`append`, `discard`): its instructions are interrupted in the first
//!   iteration only, since counting the iterations would abort the section. The instructions after
//!   the loop are interrupted after all of it.
//! * Pairs of instructions on slow paths beyond the second try.
//! * `take` of counters and histograms as a visit: it writes to no ID's copy.
//! * A section in which a `Delay`, or a `Visit` that aborts nothing, is followed by its commit: the
//!   thread spins in changed code, and is stopped before that is changed back, which aborts the
//!   section.
//! * Functions that nothing leads to, which a linker may keep for their sections' sake (see
//!   [`references`]).
//!
//! # Controls
//!
//! Sections of the subject's own with one fault each must be found out (`Operation::CONTROLS`), and
//! their models without a fault must pass. Thefts and drains without the fence must lose or double
//! something, for every kind of structure that has them. Spoiled descriptors must be noticed in
//! every build.

pub mod affinity;
pub mod build;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod campaign;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod discovery;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod effect;
pub mod elf;
pub mod golden;
pub mod image;
pub mod injection;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod probe;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod process;
pub mod references;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod round;
pub mod section;
pub mod step;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod subject;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod suite;
pub mod tally;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod text;
