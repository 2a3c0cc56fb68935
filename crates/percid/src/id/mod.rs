//! Concurrency IDs: where they come from, and which source this process uses.

mod activity;
pub(crate) mod atomic;
pub(crate) mod choice;
mod density;
pub(crate) mod fence;
pub(crate) mod kernel;
mod limits;
pub(crate) mod probe;
pub(crate) mod set;
pub(crate) mod table;
pub(crate) mod try_lock;
mod try_once;

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

pub use crate::arena::memory_of;
use crate::critical::FAST_PATH;
use crate::sys::preserving_errno;
use crate::sys::rseq::{self, ErrnoName, Registration};
pub use activity::{Activity, activity};
pub use choice::{Choice, Reason};
pub use density::{Density, set_density};
pub use percid_rules::Generation;

/// Where concurrency IDs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The kernel's own: `mm_cid` of the rseq area (Linux 6.3 and later). Never chosen by percid itself.
    ///
    /// **Linux 6.4 to 6.18 can hand one ID to two running threads**, rarely: a migration, or a scan, that is delayed at
    /// one instruction while an ordinary scan passes. Both then update the same memory without protection, and
    /// updates are lost until one of them stops. No such fault is known of 6.3, and of 6.19 and later.
    Kernel,
    /// percid's table from CPU to ID (Linux 5.10 and later).
    Table,
    /// None: the CPU number is a mere hint and every update is one atomic instruction.
    Atomic,
}

impl Source {
    /// All sources, the one with the cheapest operations first.
    pub const ALL: [Source; 3] = [Source::Kernel, Source::Table, Source::Atomic];

    /// Says whether the process can use this source, which it finds out by preparing it.
    ///
    /// The first call for [`Source::Table`] registers the process for the kernel's fence: 2 us while
    /// the process has one thread, about 20 ms afterwards.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub fn available(self) -> Result<(), Unavailable> {
        preserving_errno(|| prepare(self))
    }

    /// The ID this source gives to the calling thread now; `None` if it has none to give.
    ///
    /// A mere hint: the thread may be moved to another CPU before the caller looks at the answer. It is
    /// exact only while nothing else can run on the CPU. With [`Source::Atomic`] it is the CPU number.
    /// Async-signal-safe.
    pub fn current_id(self) -> Option<u32> {
        preserving_errno(|| {
            self.available().ok()?;
            match self {
                Source::Kernel => kernel::current(),
                Source::Table => self.enter_as_hint(),
                Source::Atomic => Some(atomic::hint()),
            }
        })
    }

    /// How many IDs of this source the process has used: all that ever existed are below.
    pub fn ids_seen(self) -> u32 {
        match self {
            Source::Kernel => kernel::ids_seen(),
            Source::Table => table::ids_seen(),
            Source::Atomic => atomic::ids_seen(),
        }
    }

    /// Sees to it that the calling thread can use an ID of this source now; `false` if it cannot.
    pub(crate) fn enter(self) -> bool {
        match self {
            Source::Kernel => kernel::enter(),
            Source::Table => table::enter(),
            Source::Atomic => atomic::enter(),
        }
    }

    /// Sees to it that the calling thread can use an ID of this source, and says which one it has, as a hint:
    /// the thread may be moved at once. The ID's memory is open. `None` if it cannot have one.
    pub(crate) fn enter_as_hint(self) -> Option<u32> {
        match self {
            Source::Kernel => {
                self.enter().then(kernel::current)?.filter(|&id| id < kernel::ids_seen())
            }
            Source::Table => (0..RESTART_LIMIT).find_map(|_| {
                table::enter();
                table::current()
            }),
            Source::Atomic => atomic::open_hint(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Source::Kernel => "kernel",
            Source::Table => "table",
            Source::Atomic => "atomic",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownSource;

impl fmt::Display for UnknownSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such source: expected kernel, table or atomic")
    }
}

impl std::error::Error for UnknownSource {}

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(name: &str) -> Result<Source, UnknownSource> {
        Source::ALL.into_iter().find(|source| source.name() == name).ok_or(UnknownSource)
    }
}

/// Why a source cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// No registered rseq area.
    NoRseq(Registration),
    /// The rseq area holds no `mm_cid`: a kernel before Linux 6.3.
    NoKernelIds,
    /// The rseq area is shared with another library: in threads that are not registered its `mm_cid` says 0.
    SharedArea,
    /// The kernel has no fence for critical sections: a kernel before Linux 5.10.
    NoMembarrier,
    /// The kernel has the fence and refuses it to this process: the `errno`.
    MembarrierRefused(i32),
    /// The kernel does not abort critical sections when it must, so what they count would be lost.
    SectionsNotAborted,
    /// Whether the kernel aborts critical sections could not be found out in the time that a first use may take. The
    /// next use tries again, longer.
    SectionsNotProbed,
    /// Whether the kernel aborts critical sections cannot be found out: a child process was refused, with this
    /// `errno`.
    ProbeRefused(i32),
    /// The memory for the table, or the arena, cannot be had.
    NoMemory,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NoRseq(registration) => write!(f, "no rseq: registration {registration}"),
            Unavailable::NoKernelIds => {
                f.write_str("the kernel keeps no mm_cid (before Linux 6.3)")
            }
            Unavailable::SharedArea => f.write_str(
                "the rseq area is another library's, and its mm_cid says 0 in threads that are not registered",
            ),
            Unavailable::NoMembarrier => {
                f.write_str("the kernel's membarrier has no rseq flavour (before Linux 5.10)")
            }
            Unavailable::MembarrierRefused(errno) => {
                write!(f, "membarrier refused: {}", ErrnoName(*errno))
            }
            Unavailable::SectionsNotAborted => f.write_str(
                "this kernel does not abort critical sections (64-bit Arm, Linux 6.19 to 7.0.13; mended in 7.0.14 \
                 and 7.1)",
            ),
            Unavailable::SectionsNotProbed => f.write_str(
                "whether this kernel aborts critical sections could not be found out in time; the next use tries \
                 again",
            ),
            Unavailable::ProbeRefused(errno) => write!(
                f,
                "whether this kernel aborts critical sections cannot be found out: clone refused, {}",
                ErrnoName(*errno)
            ),
            Unavailable::NoMemory => {
                f.write_str("no address space, or no memory that a fork wipes (MADV_WIPEONFORK)")
            }
        }
    }
}

impl std::error::Error for Unavailable {}

/// How often an operation is tried before it goes to the shared slot: often enough that a thread which
/// is moved or interrupted now and then gets through, and bounded, so that a debugger that single-steps
/// (which aborts every section) makes progress.
pub(crate) const RESTART_LIMIT: usize = 8;

/// Chooses the source for this process, at the first call; later calls return the same choice.
///
/// Every operation that needs it calls it, so programs need not. Calling it early in `main`, before
/// threads are started, makes the registration for the kernel's fence cheap: 2 us instead of 20 ms.
///
/// Thread-safe and async-signal-safe. If another thread (or the code that a signal handler interrupted)
/// is choosing at this moment, the answer is [`Source::Atomic`] with [`Reason::BeingChosen`]; objects
/// used meanwhile are updated atomically and lose nothing by it.
///
/// On 64-bit Arm with a release from 6.19 to 7.0 the first call finds out whether the kernel aborts critical sections
/// (see [`machine::probe`](crate::machine::probe)), in a few milliseconds. If 40 are not enough, as on a machine that is
/// very busy, the answer is `Source::Atomic` with [`Reason::NotKnownYet`], and a later use tries again.
///
/// ```
/// let choice = percid::init();
/// println!("{}: {}", choice.source, choice.reason);
/// ```
pub fn init() -> Choice {
    preserving_errno(|| choice::get().unwrap_or_else(choice::pending))
}

/// Makes the process's IDs dense again, on request: takes back IDs at or above
/// `min(allowed CPUs, threads)`, and those that no CPU has renewed for 100 ms. CPUs that still use
/// theirs fetch one again at their next operation.
///
/// Returns how many were taken back; always 0 if the source is not [`Source::Table`], whose IDs are
/// percid's own. Cost: one fence of all CPUs, some 10 us. Async-signal-safe.
pub fn compact() -> u32 {
    preserving_errno(|| match choice::get() {
        Some(Choice { source: Source::Table, .. }) => table::compact(),
        _ => 0,
    })
}

/// Prepares one source. Repeating it is cheap once it has succeeded.
pub(crate) fn prepare(source: Source) -> Result<(), Unavailable> {
    let ready = &READY[source as usize];
    if ready.load(Acquire) == 0 {
        let registration = rseq::registration();
        FAST_PATH.set_area(rseq::area_offset(registration));
        if source != Source::Atomic {
            probe::sections_can_be_trusted()?;
        }
        match source {
            Source::Kernel => kernel::prepare(registration)?,
            Source::Table => table::prepare(registration)?,
            Source::Atomic => {}
        }
        ready.store(1, Release);
    }
    Ok(())
}

/// Nonzero for each source that has been prepared: before that no object may lead into its sections.
static READY: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
