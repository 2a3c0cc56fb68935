//! The reasons why a source cannot be used.

use std::fmt;

use crate::sys::errno::ErrnoName;
use crate::sys::registration::Registration;

/// The reason why a source cannot be used.
///
/// ```
/// use percid::Source;
/// use percid::id::SourceError;
///
/// if let Err(SourceError::NoKernelIds) = Source::Kernel.prepare() {
///     println!("the kernel is older than Linux 6.3");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SourceError {
    /// No registered rseq area.
    NoRseq(Registration),
    /// The rseq area holds no `mm_cid`: a kernel before Linux 6.3.
    NoKernelIds,
    /// The rseq area is shared with another library: its `mm_cid` is 0 in threads that are not
    /// registered.
    SharedArea,
    /// The kernel has no fence for critical sections: a kernel before Linux 5.10, or one built
    /// without `CONFIG_RSEQ`.
    NoMembarrier,
    /// `membarrier` is refused to this process: the `errno`.
    MembarrierRefused(i32),
    /// The kernel does not abort critical sections when it must, so their updates would be lost.
    SectionsNotAborted,
    /// A probe could not determine in the time of a first use whether the kernel aborts critical
    /// sections. The next use tries again, with more time.
    SectionsNotProbed,
    /// No probe can determine whether the kernel aborts critical sections: a child process was
    /// refused, with this `errno`.
    ProbeRefused(i32),
    /// The system is not 64-bit Linux: percid's own IDs and the kernel's exist only there.
    UnsupportedPlatform,
    /// The memory for the table, or the arena, is not available.
    NoMemory,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::NoRseq(registration) => write!(f, "no rseq: registration {registration}"),
            SourceError::NoKernelIds => {
                f.write_str("the kernel keeps no mm_cid (before Linux 6.3)")
            }
            SourceError::SharedArea => f.write_str(
                "the rseq area is another library's, and its mm_cid says 0 in threads that are not registered",
            ),
            SourceError::NoMembarrier => {
                f.write_str("the kernel's membarrier has no rseq flavour (before Linux 5.10, or without CONFIG_RSEQ)")
            }
            SourceError::MembarrierRefused(errno) => {
                write!(f, "membarrier refused: {}", ErrnoName(*errno))
            }
            SourceError::SectionsNotAborted => f.write_str(
                "this kernel does not abort critical sections (64-bit Arm, Linux 6.19 to 7.0.13; fixed in 7.0.14 \
                 and 7.1)",
            ),
            SourceError::SectionsNotProbed => f.write_str(
                "it could not be determined in time if this kernel aborts critical sections; the next use tries \
                 again",
            ),
            SourceError::ProbeRefused(errno) => write!(
                f,
                "whether this kernel aborts critical sections cannot be found out: clone refused, {}",
                ErrnoName(*errno)
            ),
            SourceError::UnsupportedPlatform => f.write_str("it needs 64-bit Linux"),
            SourceError::NoMemory => f.write_str(
                "no address space (RLIMIT_AS; after mlockall, RLIMIT_MEMLOCK), or no memory that a fork wipes \
                 (MADV_WIPEONFORK)",
            ),
        }
    }
}

impl std::error::Error for SourceError {}
