//! The limit on the number of IDs in percid's table while threads migrate over many CPUs: memory
//! against time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The limit on the number of IDs in percid's table while threads migrate, see [`set_id_limit`].
///
/// ```
/// use percid::{IdLimit, set_id_limit};
///
/// set_id_limit(IdLimit::AtMost(16));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum IdLimit {
    /// The number of CPUs visited within 100 ms, if that is more than `min(allowed CPUs, threads)`.
    /// This is the default.
    #[default]
    Adaptive,
    /// The same, but at most this many (or `min(allowed CPUs, threads)`, if that is more).
    AtMost(u32),
    /// At most `min(allowed CPUs, threads)`.
    Strict,
}

static MOST: AtomicU32 = AtomicU32::new(u32::MAX);

/// Sets the limit on the number of IDs in percid's table while the process's threads migrate.
///
/// Threads that often wake up on other CPUs than before must each time steal an ID from the CPU
/// they left ([`Strict`](IdLimit::Strict)). That takes 1 us, or 10 us if that CPU runs the process.
/// Assume that this has happened ten times within 100 ms per thread (or allowed CPU, if those are
/// fewer). Then a CPU gets an ID of its own instead ([`Adaptive`](IdLimit::Adaptive)). There are then
/// as many shards of the program's data as CPUs were visited within 100 ms, and at most as many as
/// the process may use. When the threads have not migrated for 200 ms, the next ID request of any
/// CPU, or [`compact_ids`](crate::compact_ids), reduces the number of IDs to `min(allowed CPUs, threads)`
/// again.
///
/// The limit holds for the whole process, from the next ID request of any CPU on, and in children
/// of `fork`. The other sources ignore it. Thread-safe, async-signal-safe; one store.
///
/// ```
/// use percid::{IdLimit, set_id_limit};
///
/// set_id_limit(IdLimit::Strict); // least memory, whatever the threads do
/// ```
pub fn set_id_limit(limit: IdLimit) {
    let most = match limit {
        IdLimit::Adaptive => u32::MAX,
        IdLimit::AtMost(most) => most,
        IdLimit::Strict => 0,
    };
    MOST.store(most, Relaxed);
}

/// Returns the maximum number of IDs while threads migrate; 0 for no more than the bound.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) fn most() -> u32 {
    MOST.load(Relaxed)
}
