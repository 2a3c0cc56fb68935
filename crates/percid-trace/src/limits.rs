//! Limits that no trace exceeds.

/// The largest number of CPUs for which Linux can be built.
pub const MOST_CPUS: u32 = 8192;

/// The latest time that an event may have, in nanoseconds: some centuries, and the largest time in
/// Parquet. So computations with times do not overflow.
pub const LAST_TIME: u64 = i64::MAX as u64;

/// Largest ratio of decompressed to compressed size in a file. Schedules become about ten times
/// larger.
pub(crate) const LARGEST_RATIO: usize = 256;
