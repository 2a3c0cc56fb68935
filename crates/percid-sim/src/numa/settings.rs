//! The constants of the scan, which a system administrator may change.

use crate::{MS, Ns};

/// A mebibyte.
pub const MIB: u64 = 1 << 20;
/// A huge page; chunks of a scan end at its multiples.
pub const HUGE: u64 = 2 * MIB;

/// A process may be asked to arm this much a second at most, whatever its size.
const MAX_RATE: u64 = 2560 * MIB;
/// Virtual memory that a pass may look at, in multiples of what it may arm.
pub(super) const VIRTUAL: u64 = 8;

/// The settings of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A new region is left alone for this long.
    pub scan_delay: Ns,
    /// What a pass may arm, in bytes.
    pub scan_size: u64,
    /// In this time a process is scanned completely at the fastest.
    pub period_min: Ns,
    /// And at the slowest.
    pub period_max: Ns,
}

impl Default for Settings {
    /// As Linux has them unless told otherwise.
    fn default() -> Settings {
        Settings {
            scan_delay: 1000 * MS,
            scan_size: 256 * MIB,
            period_min: 1000 * MS,
            period_max: 60_000 * MS,
        }
    }
}

impl Settings {
    /// How long threads count as users of a region: one to two windows.
    pub(super) fn window(&self) -> Ns {
        4 * self.scan_delay
    }

    /// The shortest period between two passes of a thread whose process has `resident` bytes in memory.
    pub fn fastest(&self, resident: u64) -> Ns {
        let floor = 1000 * MS / (MAX_RATE / self.scan_size.max(1)).max(1);
        floor.max(self.period_min / self.passes(resident))
    }

    /// The longest one.
    pub fn slowest(&self, resident: u64) -> Ns {
        self.fastest(resident).max(self.period_max / self.passes(resident))
    }

    /// The passes that a complete scan takes at the least.
    fn passes(&self, resident: u64) -> u64 {
        resident.div_ceil(self.scan_size.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_follow_from_the_resident_memory() {
        let settings = Settings::default();
        assert_eq!(settings.fastest(0), 1000 * MS);
        assert_eq!(settings.slowest(0), 60_000 * MS);
        assert_eq!(settings.fastest(512 * MIB), 500 * MS);
        assert_eq!(settings.fastest(3072 * MIB + 1), 100 * MS, "the greatest rate bounds it");
        assert_eq!(settings.slowest(3072 * MIB + 1), 60_000 * MS / 13);
    }
}
