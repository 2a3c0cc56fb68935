//! How dense the IDs of percid's table are while threads wander over many CPUs: memory against
//! time.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many IDs the table may hand out while the process's threads wander, see [`set_density`].
///
/// ```
/// use percid::{Density, set_density};
///
/// set_density(Density::AtMost(16));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Density {
    /// As many as CPUs were visited within 100 ms, if that is more than `min(allowed CPUs,
    /// threads)`: the default.
    #[default]
    Relaxed,
    /// The same, but never more than this many (or `min(allowed CPUs, threads)`, if that is more).
    AtMost(u32),
    /// Never more than `min(allowed CPUs, threads)`.
    Strict,
}

static MOST: AtomicU32 = AtomicU32::new(u32::MAX);

/// Says how many IDs percid's table may hand out while the process's threads wander.
///
/// Threads that often wake up on other CPUs than before must each time take an ID away from the CPU
/// they left ([`Strict`](Density::Strict)), at 1 us, or 10 if that CPU runs the process. Once that
/// has happened ten times within 100 ms for each thread (or allowed CPU, if those are fewer), a CPU
/// gets an ID of its own instead ([`Relaxed`](Density::Relaxed)): there are as many copies of the
/// program's data as CPUs were visited within 100 ms, never more than it may use. When the threads
/// have stayed where they are for 200 ms, the number of IDs is within `min(allowed CPUs, threads)`
/// again from the next time that any CPU asks for an ID, or [`compact`](crate::compact).
///
/// It holds for the whole process, from the next time that any CPU asks for an ID, and in children
/// of `fork`. The other sources ignore it. Thread-safe, async-signal-safe; one store.
///
/// ```
/// use percid::{Density, set_density};
///
/// set_density(Density::Strict); // least memory, whatever the threads do
/// ```
pub fn set_density(density: Density) {
    let most = match density {
        Density::Relaxed => u32::MAX,
        Density::AtMost(most) => most,
        Density::Strict => 0,
    };
    MOST.store(most, Relaxed);
}

/// The most IDs while threads wander; 0 for no more than the bound.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) fn most() -> u32 {
    MOST.load(Relaxed)
}
