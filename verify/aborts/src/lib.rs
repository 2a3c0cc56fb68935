//! Proof that percid's critical sections survive an interruption at every instruction, and checks
//! of what the compiler and the linker make of them.
//!
//! # Why not simply single-step
//!
//! A debugger that steps through a critical section aborts it at the first step: the stop takes the
//! thread off its CPU. So each instruction gets a separate run, in two ways. A *trap* is set at the
//! instruction; the stop itself is the interruption, to which the tracer adds a signal, another CPU
//! or a theft before it lets the thread continue. Or a *jump to itself* is set: the thread keeps
//! running with its instruction pointer at this instruction, until a fence, a theft, a migration or
//! a preemption from outside takes effect, without a trap. Every abort pad holds a trap, so that
//! the tracer detects every abort, intended or not.
//!
//! The sections are found in the program itself, by its section of descriptors.
//!
//! # Interrupted operations
//!
//! All eight operations of either source, wherever the compiler has put their sections: in the fast
//! paths and out of line. The subject's operations visit all of them, and the suite reports the
//! instructions that none of them reached.
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
//! For every operation, each instruction of each section that it reaches gets each injection. Each
//! place before the section and after the commit gets those that make sense there. Each pair of
//! instructions of the first two tries, and of the first try and the handler that interrupts it,
//! gets some; and all tries are aborted. Sections on a slow path are reached by aborting the
//! sections before.
//!
//! # Required effects
//!
//! Each party of a round (the operation, the handler, a thief) has a different amount, and the
//! subject reports where each of them took place: the amounts of a counter's and a histogram's
//! copies as they are; for the others, the ID in whose copy an item or a record was found, or from
//! which it was popped. Each must have taken place exactly once, the operation in one place, and
//! that must be the right one. Also, the subject checks for damage with a ledger of all items of
//! the round (`ledger.rs`). Everything that was pushed has come out once or is inside once. Records
//! come out whole, once, with numbers that omit exactly as many as the ring counts as lost. A lent
//! value has one owner, and its lock is released. A histogram's other buckets stay empty, and so do
//! those of buckets, whose sum is that of their values. Thieves use the copy of the stolen ID as a
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
//! | membarrier against visitors | `Visit` (drain, poll), `VisitWhileStopped`; control `VisitWithoutFence` |
//!
//! # Limits
//!
//! * A loop inside a section (`append`, `discard`): its instructions are interrupted in the first
//!   iteration only, since counting the iterations would abort the section. The instructions after
//!   the loop are interrupted after all of it.
//! * Pairs of instructions on slow paths beyond the second try.
//! * `take` of counters and histograms as a visit: it writes to no ID's copy.
//! * A section in which a `Delay`, or a `Visit` that aborts nothing, is followed by its commit: the
//!   thread spins in changed code, and is stopped before that is changed back, which aborts the
//!   section.
//! * Functions without a reference, which a linker may keep because of their sections (see
//!   [`references`]).
//!
//! # Controls
//!
//! Sections of the subject's own with one fault each must be detected (`Operation::CONTROLS`), and
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
