//! Counts of what percid's table has done.

/// Counts of the slow path of percid's table in this process, and of the IDs that it took.
///
/// Two of these, a second apart, show the cost of IDs in a program whose threads migrate. A slow
/// path takes 1 us or less, a steal from a CPU that runs the process about 10 us. A child of `fork`
/// starts at zero.
///
/// ```
/// percid::init();
/// if let Some(activity) = percid::id::table_stats() {
///     println!("{} IDs given, {} of them stolen", activity.assigned, activity.stolen);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
#[repr(C)]
pub struct TableStats {
    /// IDs assigned to CPUs that had none: the slow paths that succeeded.
    pub assigned: u64,
    /// The given IDs that were taken from another CPU, with a fence of that CPU.
    pub stolen: u64,
    /// IDs evicted because they had expired or lay above the bound.
    pub evicted: u64,
    /// Fences of all CPUs for evictions.
    pub eviction_fences: u64,
    /// IDs currently held by CPUs.
    pub ids_held: u32,
    /// The current upper bound of new IDs, exclusive.
    pub id_bound: u32,
}
