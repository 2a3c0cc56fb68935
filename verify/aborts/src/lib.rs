//! Proof that percid's critical sections survive an interruption at every instruction, and checks of
//! what the compiler and the linker make of them.
//!
//! # Why not simply single-step
//!
//! A debugger that steps through a critical section aborts it at the first step: the stop takes the thread
//! off its CPU. So each instruction gets a run of its own, in two ways. A *trap* is planted at the
//! instruction; the stop itself is the interruption, to which the tracer adds a signal, another CPU or a
//! theft before it lets the thread run on. Or a *jump to itself* is planted: the thread keeps running with
//! its instruction pointer at this very instruction, until a fence, a theft, a migration or a preemption
//! from outside takes effect, with no trap in the play. Every abort pad holds a trap, so that the tracer sees
//! every abort there is, the intended ones and those that must not be.
//!
//! The sections are found in the program itself, by its section of descriptors.
//!
//! # The injections of the kernel's own tests
//!
//! The kernel's self-tests of restartable sequences put delay loops at nine points, and yields, sleeps and
//! signals, into their operations, of which percid has the increment and the membarrier. Here the points
//! are all instructions, in front, inside and behind, and the injections are these:
//!
//! | self-test | here ([`injection::Injection`]) |
//! |---|---|
//! | increment under delay loops | `Delay`, at every instruction inside |
//! | increment with `sched_yield` | `Stop` (off the CPU and on again) and `Preempt` |
//! | increment with `poll` (sleep) | `Sleep` |
//! | increment with a signal (kill) | `Signal`, with a handler that increments too; `MoveAndSignal` |
//! | (migration by chance) | `Move`, `MoveRunning` |
//! | membarrier against a section | `Fence`, `Steal`, `StealAndReturn`, `StealWhileStopped`; control `StealWithoutFence` |

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
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod round;
pub mod section;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod subject;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod suite;
pub mod tally;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod text;
