//! The error of registering memory.

use std::fmt;

/// The reason why memory cannot be registered.
///
/// ```
/// use percid_numa::{Balancer, RegisterError};
///
/// let refused = Balancer::new().register(std::ptr::null(), 0).err();
/// assert_eq!(refused, Some(RegisterError::Empty));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The range has no bytes.
    Empty,
    /// The range does not begin and end at multiples of the page size.
    NotAligned {
        /// The page size in bytes.
        page: usize,
    },
    /// Part of the range is registered already: with this balancer, or as trapped memory with any
    /// balancer.
    Overlaps {
        /// The start of that region.
        region: usize,
    },
    /// Nothing is mapped here.
    NotMapped {
        /// The first such address.
        address: usize,
    },
    /// The kernel never moves what is mapped here: its own pages, or huge pages of their own file
    /// system.
    NotMovable {
        /// The start of that mapping.
        address: usize,
    },
    /// The range consists of mappings with different access rights, or of memory and files:
    /// register each separately.
    Mixed {
        /// The start of the first mapping that differs from the first.
        address: usize,
    },
    /// The range has no access rights, so trapping could not remove any.
    NoRights {
        /// The start of the range.
        address: usize,
    },
    /// The range is executable. Policies against new code (`PR_SET_MDWE`, seccomp filters) refuse
    /// to restore such rights, and special rights of some architectures (`PROT_BTI`) would be lost.
    Executable {
        /// The start of the range.
        address: usize,
    },
    /// `RLIMIT_DATA` is set. Memory without rights does not count, so the program could use up the
    /// limit while it is armed, and the rights could not be restored.
    DataLimited,
    /// The range holds memory that the fault handler itself reads or writes: its data, the
    /// constants of its module, or the C library.
    HandlerData {
        /// The first such address.
        address: usize,
    },
    /// The range holds memory of percid's own structures, or the objects of a pool. Such memory can
    /// be registered with reported accesses, as [`register_ids`](crate::Balancer::register_ids) and
    /// [`register_pool`](crate::Balancer::register_pool) do.
    PercidMemory {
        /// The first such address.
        address: usize,
    },
    /// The range holds a part of a thread's stack, used so far or not, or of thread-local memory,
    /// or the calling thread's alternate signal stack. A fault could not be handled there, and
    /// writes of the kernel there would be lost, such as the one at the thread's end.
    ThreadMemory {
        /// The first such address.
        address: usize,
    },
    /// Writes can be detected only to private, writable memory. This is a file, memory that is
    /// shared with other processes, or read-only memory.
    NotPrivate {
        /// The start of that memory.
        address: usize,
    },
    /// The process may not use `userfaultfd` for faults in system calls. That requires the
    /// capability `CAP_SYS_PTRACE`, or `vm.unprivileged_userfaultfd` = 1, or the right to open
    /// `/dev/userfaultfd` (Linux 6.1).
    NotPermitted,
    /// The kernel has no `userfaultfd` with write protection. That requires Linux 5.7 (x86-64) or
    /// 6.10 (aarch64) with `CONFIG_USERFAULTFD`. Older aarch64 kernels appear to support it: percid
    /// tests whether a write is detected.
    NotSupported,
    /// Another user of `userfaultfd` monitors the memory, perhaps another balancer.
    OtherMonitor,
    /// There are 256 trapped regions already.
    TooManyTrapped,
    /// This balancer has 256 regions already whose writes are detected.
    TooManyWritten,
    /// The kernel refused a system call that the detection of writes requires.
    Refused {
        /// The error number.
        errno: i32,
    },
    /// The process has another handler of SIGSEGV, which was installed after percid's.
    HandlerReplaced,
    /// There is no memory for the state of the range's pages.
    NoMemory,
    /// `/proc/self/maps` cannot be read.
    NoProc,
    /// The balancer belongs to the parent of this process.
    Forked,
    /// This system is not 64-bit Linux. All functions of this crate can be called anyway, so that
    /// programs need no conditional compilation; memory stays where it is.
    UnsupportedPlatform,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Empty => f.write_str("the range is empty"),
            RegisterError::NotAligned { page } => {
                write!(f, "the range must begin and end at multiples of {page} bytes")
            }
            RegisterError::Overlaps { region } => {
                write!(f, "the range overlaps the region registered at {region:#x}")
            }
            RegisterError::NotMapped { address } => write!(f, "nothing is mapped at {address:#x}"),
            RegisterError::NotMovable { address } => {
                write!(f, "the kernel does not move the pages mapped at {address:#x}")
            }
            RegisterError::Mixed { address } => {
                write!(
                    f,
                    "the mapping at {address:#x} is of another kind than the first: register each"
                )
            }
            RegisterError::NoRights { address } => {
                write!(
                    f,
                    "the memory at {address:#x} has no access rights that could be taken away"
                )
            }
            RegisterError::Executable { address } => {
                write!(f, "the memory at {address:#x} is executable, and might not become so again")
            }
            RegisterError::DataLimited => {
                f.write_str("RLIMIT_DATA must be unlimited, or rights might not be restored")
            }
            RegisterError::HandlerData { address } => {
                write!(f, "the fault handler uses the data at {address:#x}")
            }
            RegisterError::PercidMemory { address } => {
                write!(f, "the memory at {address:#x} is percid's own: it can be registered to be reported")
            }
            RegisterError::ThreadMemory { address } => {
                write!(f, "a thread's stack or thread-local storage is at {address:#x}")
            }
            RegisterError::NotPrivate { address } => write!(
                f,
                "what is mapped at {address:#x} is not writable memory of this process alone: writes to it \
                 cannot be seen"
            ),
            RegisterError::NotPermitted => f.write_str(
                "userfaultfd is not permitted: it takes CAP_SYS_PTRACE, vm.unprivileged_userfaultfd=1, or the \
                 right to open /dev/userfaultfd",
            ),
            RegisterError::NotSupported => f.write_str(
                "the kernel has no userfaultfd with write protection (Linux 5.7 on x86-64, 6.10 on aarch64)",
            ),
            RegisterError::OtherMonitor => {
                f.write_str("another userfaultfd, perhaps another balancer's, monitors the memory")
            }
            RegisterError::TooManyWritten => {
                f.write_str("there are 256 regions whose writes are seen already")
            }
            RegisterError::Refused { errno } => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "what it takes to see writes was refused: {error}")
            }
            RegisterError::TooManyTrapped => f.write_str("there are 256 trapped regions already"),
            RegisterError::HandlerReplaced => {
                f.write_str("another SIGSEGV handler was installed after percid's")
            }
            RegisterError::NoMemory => f.write_str("no memory to keep track of the pages"),
            RegisterError::NoProc => f.write_str("/proc/self/maps cannot be read"),
            RegisterError::Forked => f.write_str("the balancer belongs to the parent process"),
            RegisterError::UnsupportedPlatform => {
                f.write_str("memory is balanced on 64-bit Linux only: not supported here")
            }
        }
    }
}

impl std::error::Error for RegisterError {}
