//! The three ID sources behind one type.

use std::fmt;
use std::str::FromStr;

use super::prepared::Prepared;
use super::source_error::SourceError;
use super::{area, atomic, kernel, probe, table};
use crate::retry::RETRY_LIMIT;
use crate::sys::atomic::AtomicU32;
use crate::sys::preserving_errno;

/// The sources that have been prepared: before that no object may lead into their sections.
static PREPARED: [Prepared; 3] = [const { Prepared { done: AtomicU32::new(0) } }; 3];

/// A source of concurrency IDs.
///
/// ```
/// use percid::Source;
///
/// let source: Source = "table".parse()?;
/// assert_eq!((source, source.to_string()), (Source::Table, "table".to_owned()));
/// # Ok::<(), percid::id::UnknownSource>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The kernel's own IDs: `mm_cid` of the rseq area (Linux 6.3 and later). percid never chooses
    /// this source by itself.
    ///
    /// **Linux 6.4 to 6.18 can assign one ID to two running threads**, rarely: if a migration or a
    /// scan is delayed at one instruction while an ordinary scan passes. Both threads then update
    /// the same memory without protection, and updates are lost until one of them stops. No such
    /// bug is known in 6.3, and in 6.19 and later.
    Kernel,
    /// percid's table from CPU to ID (64-bit Linux, 5.10 and later).
    Table,
    /// No IDs: the CPU number is only a hint, and every update is one atomic instruction. On
    /// systems without a cheap way to read the CPU number, the hint is a number that is assigned to
    /// threads in round-robin order. It is the only source on systems other than 64-bit Linux.
    Atomic,
}

impl Source {
    /// All sources, the one with the cheapest operations first.
    ///
    /// ```
    /// for source in percid::Source::ALL {
    ///     println!("{source}");
    /// }
    /// ```
    pub const ALL: &'static [Source] = &[Source::Kernel, Source::Table, Source::Atomic];

    /// Prepares the process to use this source, and so checks whether it can. After a success,
    /// further calls cost one load.
    ///
    /// The first call for [`Source::Table`] registers the process for the kernel's fence: 2 us
    /// while the process has one thread, about 20 ms later. Thread-safe, async-signal-safe.
    ///
    /// ```
    /// use percid::Source;
    ///
    /// match Source::Table.prepare() {
    ///     Ok(()) => println!("percid's own IDs work here"),
    ///     Err(why) => println!("no IDs: {why}"),
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why it cannot be used.
    pub fn prepare(self) -> Result<(), SourceError> {
        preserving_errno(|| {
            PREPARED[self as usize].ensure(|| self.prepare_where(probe::sections_can_be_trusted))
        })
    }

    #[cold]
    fn prepare_where(
        self,
        sections_can_be_trusted: impl FnOnce() -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        let registration = area::find();
        if self != Source::Atomic {
            sections_can_be_trusted()?;
        }
        match self {
            Source::Kernel => kernel::prepare(registration),
            Source::Table => table::prepare(registration),
            Source::Atomic => {
                atomic::prepare();
                Ok(())
            }
        }
    }

    /// Returns the ID of the calling thread in this source; `None` if it has none.
    ///
    /// The result is only a hint: the thread may be moved to another CPU before the caller uses it.
    /// It is exact only while nothing else can run on the CPU. With [`Source::Atomic`] it is the
    /// CPU number, or a number below the number of copies on systems other than 64-bit Linux.
    /// Async-signal-safe.
    ///
    /// ```
    /// let source = percid::init().source;
    /// println!("about here: {:?}", source.current_id());
    /// ```
    #[must_use]
    pub fn current_id(self) -> Option<u32> {
        preserving_errno(|| {
            self.prepare().ok()?;
            match self {
                Source::Kernel => kernel::current(),
                Source::Table => self.ensure_id_hint(),
                Source::Atomic => Some(atomic::hint()),
            }
        })
    }

    /// Returns an ID like [`current_id`](Source::current_id), for a source that some object uses:
    /// a few instructions.
    #[inline]
    pub(crate) fn hint(self) -> Option<u32> {
        match self {
            Source::Kernel => kernel::current_admitted(),
            Source::Table => table::current(),
            Source::Atomic => Some(atomic::hint()),
        }
    }

    /// Returns the number of IDs of this source that the process has used: all IDs so far are below
    /// it.
    ///
    /// ```
    /// let counter = percid::Counter::new();
    /// counter.increment();
    /// println!("{} IDs so far", percid::init().source.id_count());
    /// ```
    #[inline]
    #[must_use]
    pub fn id_count(self) -> u32 {
        match self {
            Source::Kernel => kernel::id_count(),
            Source::Table => table::id_count(),
            Source::Atomic => atomic::id_count(),
        }
    }

    /// Makes sure that the calling thread can use an ID of this source now. Returns `false` if it
    /// cannot.
    pub(crate) fn ensure_id(self) -> bool {
        // An earlier probe by this process may have left a child.
        probe::reap_left();
        match self {
            Source::Kernel => kernel::ensure_id(),
            Source::Table => table::ensure_id(),
            Source::Atomic => atomic::ensure_id(),
        }
    }

    /// Makes sure that the calling thread can use an ID of this source, and returns that ID as a
    /// hint: the thread may be moved at once. The ID's memory is open. Returns `None` if the thread
    /// cannot have an ID.
    pub(crate) fn ensure_id_hint(self) -> Option<u32> {
        match self {
            Source::Kernel => self.ensure_id().then(kernel::current_admitted)?,
            Source::Table => (0..RETRY_LIMIT).find_map(|_| {
                table::ensure_id();
                table::current()
            }),
            Source::Atomic => atomic::open_hint(),
        }
    }

    pub(crate) fn name(self) -> &'static str {
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

/// The error for a name that is not the name of a source.
///
/// ```
/// let unknown = "percpu".parse::<percid::Source>().unwrap_err();
/// assert_eq!(unknown.to_string(), "no such source: expected kernel, table or atomic");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
        Source::ALL.iter().copied().find(|source| source.name() == name).ok_or(UnknownSource)
    }
}

#[cfg(all(
    test,
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere),
    not(percid_portable)
))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Release;

    use crate::Counter;
    use crate::sys::{errno, set_errno, steps};

    #[test]
    fn without_aborts_there_are_no_sections() {
        let refused = Err(SourceError::SectionsNotAborted);
        assert_eq!(Source::Kernel.prepare_where(|| refused), refused);
        assert_eq!(Source::Table.prepare_where(|| refused), refused);
        assert_eq!(Source::Atomic.prepare_where(|| unreachable!("it has none")), Ok(()));
    }

    #[test]
    fn preparing_leaves_errno_alone() {
        if Source::Table.prepare().is_err() {
            return;
        }
        // Other threads that find it unprepared prepare it again.
        PREPARED[Source::Table as usize].done.store(0, Release);
        set_errno(1234);
        let watching = steps::watch(|_| Some(Err(libc::EPERM)));
        assert!(Source::Table.prepare().is_err());
        drop(watching);
        assert_eq!(errno(), 1234);
        assert_eq!(Source::Table.prepare(), Ok(()));
    }

    /// An operation on a CPU without an ID gets one and is retried: it counts in that ID's memory
    /// and not in the shared slot.
    #[test]
    fn an_operation_is_tried_again_with_the_id_that_it_got() {
        let Ok(counter) = Counter::with_source(Source::Table) else { return };
        let (mut rounds, mut shared) = (0, 0);
        while rounds < 1000 {
            let before = counter.shared();
            let forgotten = table::hooks::forget_all();
            counter.add(1);
            if forgotten {
                (rounds, shared) = (rounds + 1, shared + counter.shared() - before);
            }
        }
        // Another test may steal the ID between the two lines, within a microsecond. If that
        // happened in every tenth round, 500 of 1000 would happen by chance once in 10^200 runs.
        assert!(shared < 500, "{shared} of {rounds}");
    }
}
