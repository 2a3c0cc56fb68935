//! Recording of scheduler events from the running kernel.
//!
//! There are two ways ([`Backend`]). With tracefs the kernel reports everything that a
//! [`Trace`](crate::Trace) can hold, but only to users who may access that file system: usually the
//! superuser. With perf events an ordinary user may record the commands that they start, with less
//! detail.
//!
//! [`record`] stores a trace in memory, [`record_to`] passes events on as they come.
//!
//! On systems other than Linux nothing is recorded: both return [`Refusal::NotSupported`].
//!
//! | | tracefs | perf events |
//! |---|---|---|
//! | switches of the target's threads | yes | yes |
//! | what ran before and after them | yes | only where the whole system may be recorded |
//! | why a thread stopped | yes | whether it could have gone on |
//! | threads created and ended, names, programs replaced | yes | yes, but not which of two processes share memory |
//! | wakeups, migrations, ticks, the kernel's concurrency IDs | yes | no: a migration shows by the next switch |
//! | affinity at the start | yes | yes |
//! | changes of affinity | approximately, see [`Extra::affinity`] | no |
//! | CPUs that are plugged in meanwhile | yes | no |

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
mod options;
mod recorded;
mod refusal;
mod sink;
mod whole;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::record_to;
#[cfg(target_os = "linux")]
pub use linux::record_to;
pub use options::{Backend, Extra, Options, Target};
pub use recorded::{Ended, Progress, Recorded};
pub use refusal::Refusal;
pub use sink::{Piece, Sink, UNWRITTEN};
pub use whole::record;
