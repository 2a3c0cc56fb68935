//! The constants and rules of a balancer.

use std::ffi::c_int;
use std::time::Duration;

use percid_numa::{Rules, Width};

use super::error;
use crate::barrier::guard;
use crate::sized;

/// Which of the published fixes a balancer's scan has. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSet {
    /// Linux 6.6, before the published series: a region that the scanning thread does not use may
    /// never be scanned.
    Base = 1,
    /// The published series (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
    Selective = 2,
    /// The series and the fixes that followed, as in Linux 6.12. The default.
    Fixed = 3,
}

/// The constants and rules of a balancer, filled by percid_balancer_settings_init() and then
/// changed as wanted.
///
/// Later versions may add members at the end. Those of the scan have the published values at first
/// (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The size of this structure in bytes, which percid_balancer_settings_init() stores. Leave it
    /// alone.
    pub size: usize,
    /// A new region is left alone for this long, in nanoseconds; 1 s.
    pub scan_delay_ns: u64,
    /// What a pass may arm, in bytes; 256 MiB. It may look at eight times as much.
    pub scan_size: u64,
    /// The shortest time in which all regions together are scanned once, in nanoseconds; 1 s.
    pub period_min_ns: u64,
    /// The longest, in nanoseconds; 60 s.
    pub period_max_ns: u64,
    /// What may be armed a second, in bytes; 2560 MiB.
    pub max_rate: u64,
    /// What one system call may move at most, in bytes: for as long as it takes, threads of the
    /// program may have to wait for a page fault or a mapping of their own. 2 MiB, percid's own
    /// value.
    pub batch: u64,
    /// About how long one system call may move pages, in nanoseconds: earlier calls decide how many
    /// pages that is, 64 KiB at the least. 10 ms, percid's own value.
    pub batch_time_ns: u64,
    /// What may be moved a second, in bytes; 2560 MiB, percid's own value.
    pub bandwidth: u64,
    /// Not 0: pages that were moved before need longer evidence to be moved again. 1, percid's own
    /// addition.
    pub backoff: c_int,
    /// One of enum percid_scan_rules; PERCID_SCAN_RULES_FIXED.
    pub rules: c_int,
    /// The bits of the sets of threads that used a region of late: 64, as published, or 128.
    pub width: c_int,
    /// Must be 0.
    pub reserved: c_int,
}

impl Settings {
    fn published() -> Settings {
        let percid_numa::Settings {
            scan_delay,
            scan_size,
            period_min,
            period_max,
            max_rate,
            batch,
            batch_time,
            bandwidth,
            backoff,
        } = percid_numa::Settings::default();
        Settings {
            size: size_of::<Settings>(),
            scan_delay_ns: nanoseconds(scan_delay),
            scan_size,
            period_min_ns: nanoseconds(period_min),
            period_max_ns: nanoseconds(period_max),
            max_rate,
            batch,
            batch_time_ns: nanoseconds(batch_time),
            bandwidth,
            backoff: c_int::from(backoff),
            rules: RuleSet::Fixed as c_int,
            width: Rules::default().width.bits() as c_int,
            reserved: 0,
        }
    }

    fn constants(&self) -> percid_numa::Settings {
        percid_numa::Settings {
            scan_delay: Duration::from_nanos(self.scan_delay_ns),
            scan_size: self.scan_size,
            period_min: Duration::from_nanos(self.period_min_ns),
            period_max: Duration::from_nanos(self.period_max_ns),
            max_rate: self.max_rate,
            batch: self.batch,
            batch_time: Duration::from_nanos(self.batch_time_ns),
            bandwidth: self.bandwidth,
            backoff: self.backoff != 0,
        }
    }

    /// Returns the rules; `None` if a number is none of them.
    fn rules(&self) -> Option<Rules> {
        let sets = [
            (RuleSet::Base, Rules::BASE),
            (RuleSet::Selective, Rules::SELECTIVE),
            (RuleSet::Fixed, Rules::LINUX_6_12),
        ];
        let (_, rules) = sets.into_iter().find(|(set, _)| *set as c_int == self.rules)?;
        let widths = [Width::Bits64, Width::Bits128];
        let width = widths.into_iter().find(|width| width.bits() as c_int == self.width)?;
        Some(Rules { width, ..rules })
    }
}

/// Converts a duration to nanoseconds; 584 years at most.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Makes a balancer with the caller's settings.
///
/// # Safety
///
/// The pointer is good, and the structure as long as it says.
pub(crate) unsafe fn balancer(settings: *const Settings) -> Result<percid_numa::Balancer, c_int> {
    // SAFETY: the size comes first in every version.
    let size = unsafe { (&raw const (*settings).size).read() };
    if size < size_of::<Settings>() {
        return Err(-libc::EINVAL);
    }
    // SAFETY: by contract.
    let settings = unsafe {
        if !sized::is_known(settings, size) {
            return Err(-libc::E2BIG);
        }
        &*settings
    };
    let rules = settings.rules().filter(|_| settings.reserved == 0).ok_or(-libc::EINVAL)?;
    percid_numa::Balancer::builder()
        .settings(settings.constants())
        .rules(rules)
        .build()
        .map_err(error::of_setting)
}

/// Fills `settings` with the defaults. `size` is sizeof(percid_balancer_settings).
///
/// Returns 0, or -EINVAL for NULL or a size that this structure never had.
///
/// # Safety
///
/// `settings` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_settings_init(
    settings: *mut Settings,
    size: usize,
) -> c_int {
    if size < size_of::<Settings>() {
        return -libc::EINVAL;
    }
    guard(-libc::EFAULT, || {
        let published = Settings { size, ..Settings::published() };
        // SAFETY: the caller's structure has `size` bytes.
        unsafe { sized::store(settings, size, &published) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_librarys() {
        let settings = Settings::published();
        assert_eq!(settings.constants(), percid_numa::Settings::default());
        assert_eq!(settings.rules(), Some(Rules::default()));
    }

    #[test]
    fn no_byte_is_padding() {
        assert_eq!(size_of::<Settings>(), size_of::<[u64; 9]>() + size_of::<[c_int; 4]>());
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        let good = Settings::published();
        let refused = |settings: Settings| {
            // SAFETY: a structure of its own size.
            unsafe { balancer(&settings) }.err()
        };
        assert_eq!(refused(good), None);
        assert_eq!(refused(Settings { rules: RuleSet::Base as c_int, width: 128, ..good }), None);
        for bad in [
            Settings { rules: 0, ..good },
            Settings { rules: 4, ..good },
            Settings { width: 65, ..good },
            Settings { reserved: 1, ..good },
            Settings { size: good.size - 1, ..good },
            Settings { batch: 0, ..good },
        ] {
            assert_eq!(refused(bad), Some(-libc::EINVAL), "{bad:?}");
        }
        let swapped = Settings { period_min_ns: good.period_max_ns + 1, ..good };
        assert_eq!(refused(swapped), Some(-libc::ERANGE));
        assert_eq!(refused(Settings { scan_size: u64::MAX, ..good }), Some(-libc::ERANGE));
    }

    #[test]
    fn members_of_later_versions_must_be_zero() {
        #[repr(C)]
        struct Later {
            known: Settings,
            new: u64,
        }
        let known = Settings { size: size_of::<Later>(), ..Settings::published() };
        let refused = |new: u64| {
            let later = Later { known, new };
            // SAFETY: a structure of the size that it says.
            unsafe { balancer((&raw const later).cast()) }.err()
        };
        assert_eq!((refused(0), refused(1)), (None, Some(-libc::E2BIG)));
    }
}
