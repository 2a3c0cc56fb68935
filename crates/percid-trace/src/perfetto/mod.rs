//! Traces of Perfetto: read what it recorded, and write what its web interface shows.
//!
//! [`read`] takes the scheduling events of ftrace, one by one or in the compact form, and the
//! processes of threads. It reads `sched_switch`, `sched_waking`, `sched_wakeup`,
//! `sched_wakeup_new`, `sched_migrate_task`, `sched_process_fork`, `sched_process_exec`,
//! `sched_process_exit`, `task_newtask`, `task_rename`, and `rseq_update` if it was recorded as a
//! generic event with the names of its fields. Times stay those of ftrace's clock, which is `boot`
//! unless the trace contains another one.
//!
//! [`write()`] makes a file to look at in Perfetto's web interface, with two things in it:
//!
//! - The schedule as events of ftrace: a track for each CPU, and the threads by process and name.
//! - The concurrency IDs that a replay handed out, if it is given any ([`IdTracks`]): below each
//!   process a track for each of its IDs, on it a slice for each time that a thread held it, and an
//!   arrow from the last holder before a steal to the first one after it.
//!
//! A thread `other` stands for threads that ran but were not recorded.
//!
//! Read back, such a file gives the same events, apart from what Perfetto has no place for:
//!
//! - names longer than 15 bytes, empty ones, and those of the idle thread;
//! - names that a thread already has;
//! - two creations of one thread on one CPU, one right after the other: they are taken for two
//!   tracepoints of one;
//! - the clock, which is always `boot`, the number of possible CPUs, and the command.
//!
//! The timer tick, affinities and the processes of threads are written as generic events of our
//! own, which Perfetto shows by name; the processes also as Perfetto itself records them.

mod compact;
mod compressed;
mod generic;
mod ids;
mod messages;
mod other;
mod packets;
mod read;
mod unknown;
mod write;

pub use ids::{IdSpan, IdTracks, Steal};
pub use read::read;
pub use write::write;
