//! The description of a thread's registration for restartable sequences.

use std::fmt;

use super::errno::ErrnoName;
use super::thread;

/// The way in which the threads of this process are registered.
///
/// ```
/// use percid::machine::{self, Registration};
///
/// if let Registration::Refused(errno) = machine::read().rseq.registration {
///     println!("the kernel refuses rseq: errno {errno}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Registration {
    /// The C library registers every thread when it starts.
    Libc,
    /// percid registers each thread at its first need, since the C library does not.
    Percid,
    /// Some library of the program defines the thread-local area `__rseq_abi`, and percid shares
    /// it: the first library in a thread that needs it registers it. Only
    /// [`Source::Table`](crate::Source::Table) works in this case.
    Shared,
    /// Another library has registered an area of its own that percid cannot find, and a thread has
    /// only one.
    Occupied,
    /// The kernel refuses: its result of percid's attempt, an `errno`.
    Refused(i32),
    /// percid has no critical sections for this architecture.
    Unsupported,
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Registration::Libc => f.write_str("by the C library"),
            Registration::Percid => f.write_str("by percid, thread by thread"),
            Registration::Shared => f.write_str("shared with another library (__rseq_abi)"),
            Registration::Occupied => {
                f.write_str(
                    "taken: another library has registered this thread's only rseq area; switch that \
                     library's use of rseq off",
                )?;
                if !thread::has_libc_rseq() {
                    return Ok(());
                }
                f.write_str(
                    ", or do not switch the C library's off (GLIBC_TUNABLES=glibc.pthread.rseq=0)",
                )
            }
            Registration::Refused(errno) => write!(f, "refused: {}", ErrnoName(*errno)),
            Registration::Unsupported => f.write_str("not supported on this architecture"),
        }
    }
}

/// The way in which the kernel updates a registered area.
///
/// ```
/// if let Some(mode) = percid::machine::read().rseq.mode {
///     println!("the kernel keeps the area up to date in mode {mode:?}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RseqMode {
    /// The only mode of a kernel that announces at most 32 bytes.
    Single,
    /// 32 bytes are registered at a kernel that announces more: it rewrites all IDs at every
    /// switch, for libraries that rely on that.
    Compatible,
    /// More than 32 bytes are registered: IDs are written when they change, and a process that
    /// writes to a field of the kernel is killed.
    Fast,
}
