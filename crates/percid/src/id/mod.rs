//! Concurrency IDs: their sources, and the selection of the source for this process.

pub(crate) mod aborts;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod area;
pub(crate) mod atomic;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
mod elsewhere;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod entry;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) mod fence;
mod id_limit;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) mod kernel;
mod kernel_numbers;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod limits;
mod prepared;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) mod probe;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod published;
mod seen;
pub(crate) mod selection;
pub(crate) mod set;
mod set_words;
pub(crate) mod source;
pub(crate) mod source_error;
#[cfg(any(
    feature = "testing",
    all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))
))]
pub(crate) mod spoilt;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) mod table;
mod table_stats;
pub(crate) mod try_lock;
mod try_once;

pub use crate::arena::memory_of;
use crate::sys::preserving_errno;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
pub(crate) use elsewhere::*;
pub use id_limit::{IdLimit, set_id_limit};
pub use kernel_numbers::{KernelNumbers, kernel_numbers};
pub use percid_rules::Generation;
pub use selection::{SelectionReason, SourceSelection};
pub use source::{Source, UnknownSource};
pub use source_error::SourceError;
pub(crate) use table::memory as table_memory;
pub use table_stats::TableStats;

/// Chooses the source for this process, at the first call; later calls return the same selection.
///
/// Every operation that needs the source calls this function, so programs need not. An early call
/// in `main`, before threads are started, makes the registration for the kernel's fence cheap: 2 us
/// instead of 20 ms.
///
/// Thread-safe and, on 64-bit Linux, async-signal-safe. On other systems the first call may
/// allocate, and takes the standard library's lock of the environment. If another thread (or the
/// code that a signal handler interrupted) is currently choosing, the result is [`Source::Atomic`]
/// with [`SelectionReason::Selecting`]. Objects used during that time are updated atomically and lose
/// nothing.
///
/// On 64-bit Arm and RISC-V with a release from 6.19 to 7.1 the first call probes whether the kernel
/// aborts critical sections (see [`machine::probe`](crate::machine::probe)), in a few milliseconds.
/// If 40 ms are not enough, as on a very busy machine, the result is `Source::Atomic` with
/// [`SelectionReason::ProbeInconclusive`], and a later use tries again.
///
/// ```
/// let selection = percid::init();
/// println!("{}: {}", selection.source, selection.reason);
/// ```
pub fn init() -> SourceSelection {
    preserving_errno(|| selection::get().unwrap_or_else(selection::pending))
}

/// Makes the process's IDs dense again: evicts IDs at or above `min(allowed CPUs, threads)`, and
/// those that no CPU has renewed for 100 ms. CPUs that still use theirs get one again at their next
/// operation.
///
/// Returns the number of evicted IDs. It is always 0 if the source is not [`Source::Table`], the
/// only one with IDs of percid's own. The cost is one fence of all CPUs, about 10 us.
/// Async-signal-safe.
///
/// ```
/// let taken_back = percid::compact_ids();
/// println!("{taken_back} IDs taken back");
/// ```
pub fn compact_ids() -> u32 {
    preserving_errno(|| match selection::get() {
        Some(SourceSelection { source: Source::Table, .. }) => table::compact_ids(),
        _ => 0,
    })
}

/// Returns the counts of the table so far; `None` if the table is not used, or if another thread
/// currently holds its lock. Linear in the number of possible CPUs. Thread-safe, async-signal-safe.
///
/// ```
/// percid::init();
/// let steals = || percid::id::table_stats().map(|stats| stats.stolen);
/// let before = steals();
/// // ... the program's work ...
/// if let (Some(before), Some(now)) = (before, steals()) {
///     println!("{} IDs stolen meanwhile", now - before);
/// }
/// ```
#[must_use]
pub fn table_stats() -> Option<TableStats> {
    preserving_errno(table::table_stats)
}

#[cfg(all(
    test,
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, percid_elsewhere, percid_portable))
))]
mod tests {
    use super::*;
    use crate::sys::affinity::{self, Affinity};
    use crate::sys::{child, errno, set_errno};

    #[test]
    fn the_selection_is_made_once() {
        let selected = init();
        assert_eq!((selected, Some(selected)), (init(), selection::get()));
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            assert!(source.ensure_id(), "{source}");
        }
    }

    /// The child has one thread, so one ID is enough.
    #[test]
    fn ids_beyond_the_bound_are_evicted_and_counted() {
        if init().source != Source::Table || affinity::possible_count() == 1 {
            return percid_skips::not_checked("compaction", "there is no table of several IDs");
        }
        child::run(|| {
            let cpu = affinity::current_cpu();
            Affinity::confine(cpu).expect("it is allowed");
            let before = table_stats().map(|stats| stats.evicted);
            assert!(Source::Table.ensure_id() && table::hooks::give(cpu, 1));
            set_errno(4321);
            assert_eq!(Source::Table.current_id(), Some(1));
            assert_eq!((compact_ids(), compact_ids()), (1, 0));
            assert_eq!(table_stats().map(|stats| stats.evicted), before.map(|before| before + 1));
            assert_eq!(errno(), 4321);
            assert_eq!(Source::Table.current_id(), Some(0));
        });
    }
}
