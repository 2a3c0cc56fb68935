//! The constants and rules of a balancer.

use std::ffi::c_int;
use std::time::Duration;

use percid_numa::{Order, Rules, Tiers, Width};

use super::error;
use crate::barrier::guard;
use crate::sized;

/// The set of published fixes in a balancer's scan. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSet {
    /// Linux 6.4 to 6.6, before the published series: a region that the scanning thread does not
    /// use may never be scanned.
    Base = 1,
    /// The published series (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
    Selective = 2,
    /// The series and the later fixes, as in Linux 6.12. The default.
    Fixed = 3,
}

/// The order of a scan's visits. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitOrder {
    /// The order of addresses, from the end of the last pass, as in Linux.
    Address = 1,
    /// The order of use: first regions that the scanning thread uses, then those that several
    /// threads use, then those that any thread uses, then one region without users. No kernel does
    /// this.
    Activity = 2,
}

impl VisitOrder {
    const ALL: [(VisitOrder, Order); 2] =
        [(VisitOrder::Address, Order::Address), (VisitOrder::Activity, Order::Activity)];
}

/// The constants and rules of a balancer, filled by percid_balancer_settings_init() and then
/// changed as required.
///
/// Later versions may add members at the end. The defaults of the scan's members are the published
/// values (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The size of this structure in bytes, which percid_balancer_settings_init() stores. Do not
    /// change it.
    pub size: usize,
    /// Age at which a new region is scanned first, in nanoseconds; 1 s.
    pub scan_delay_ns: u64,
    /// Maximum amount that a pass arms, in bytes; 256 MiB. It may examine eight times as much.
    pub scan_size: u64,
    /// The shortest time in which all regions together are scanned once, in nanoseconds; 1 s.
    pub period_min_ns: u64,
    /// The longest such time, in nanoseconds; 60 s.
    pub period_max_ns: u64,
    /// Maximum amount to arm per second, in bytes; 2560 MiB.
    pub max_rate: u64,
    /// Maximum amount that one system call moves, in bytes: during the call, threads of the program
    /// may have to wait for a page fault or their own mapping. 8 MiB, percid's own value.
    pub batch: u64,
    /// Approximate maximum time for which one system call moves pages, in nanoseconds: earlier
    /// calls determine the number of pages, at least 64 KiB. 10 ms, percid's own value.
    pub batch_time_ns: u64,
    /// Maximum amount to move per second, in bytes; 2560 MiB, percid's own value.
    pub bandwidth: u64,
    /// Not 0: pages that were moved before need longer evidence to be moved again. 1, percid's own
    /// addition.
    pub backoff: c_int,
    /// Number of bits in the sets of recent threads of a region: 64, as published, or 128.
    pub width: c_int,
    /// The order in which regions are visited: one of enum percid_scan_order;
    /// PERCID_SCAN_ORDER_ADDRESS.
    pub order: c_int,
    /// Not 0: windows of activity end also for regions that the scanning thread does not use. 1.
    /// This and the following five members are the rules of the scan, which
    /// percid_balancer_settings_set_rules() sets as in Linux.
    pub window_before_test: c_int,
    /// Not 0: no region is scanned twice in a scan cycle. 1.
    pub once_per_sequence: c_int,
    /// Not 0: a region whose scan has begun is completed by any thread. 1.
    pub complete_partial: c_int,
    /// Not 0: if regions were left out because the scanning thread does not use them, one of them
    /// is scanned nevertheless. 1.
    pub scan_one_inactive: c_int,
    /// Not 0: activity does not count in the region's own first two scan cycles, instead of the
    /// process's. 1.
    pub per_region_cycles: c_int,
    /// Not 0: a region that was left out for more scan cycles than there are threads is scanned. 1.
    pub scan_starved: c_int,
    /// Not 0: unused memory is demoted, that is moved to the nearest node without CPUs. Memory that
    /// is used there soon after it was armed is promoted, that is moved to the node of the thread
    /// that uses it. 0.
    pub tiers: c_int,
    /// With `tiers`: memory that was armed for this time and not used is demoted, in nanoseconds;
    /// 120 s. With a year, which is the maximum, nothing is demoted.
    pub cold_after_ns: u64,
    /// With `tiers`: memory that is used sooner than this time after it was armed is promoted, in
    /// nanoseconds; 1 s. The balancer changes it, up to twice the value, so that the promotion rate
    /// is close to its limit. With 0 nothing is promoted.
    pub hot_threshold_ns: u64,
    /// With `tiers`: maximum amount to promote per second, and to demote per second, in bytes; 128
    /// MiB, percid's own value.
    pub tiers_rate: u64,
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
            tiers,
        } = percid_numa::Settings::default();
        let Tiers { cold_after, hot_threshold, rate } = tiers.unwrap_or_default();
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
            width: 0,
            order: 0,
            window_before_test: 0,
            once_per_sequence: 0,
            complete_partial: 0,
            scan_one_inactive: 0,
            per_region_cycles: 0,
            scan_starved: 0,
            tiers: c_int::from(tiers.is_some()),
            cold_after_ns: nanoseconds(cold_after),
            hot_threshold_ns: nanoseconds(hot_threshold),
            tiers_rate: rate,
        }
        .with_rules(Rules::default())
    }

    fn with_rules(self, rules: Rules) -> Settings {
        let order = VisitOrder::ALL.iter().find(|(_, order)| *order == rules.order);
        Settings {
            width: rules.width.bits() as c_int,
            order: order.map_or(0, |(order, _)| *order as c_int),
            window_before_test: c_int::from(rules.window_before_test),
            once_per_sequence: c_int::from(rules.once_per_sequence),
            complete_partial: c_int::from(rules.complete_partial),
            scan_one_inactive: c_int::from(rules.scan_one_inactive),
            per_region_cycles: c_int::from(rules.per_region_cycles),
            scan_starved: c_int::from(rules.scan_starved),
            ..self
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
            tiers: (self.tiers != 0).then(|| Tiers {
                cold_after: Duration::from_nanos(self.cold_after_ns),
                hot_threshold: Duration::from_nanos(self.hot_threshold_ns),
                rate: self.tiers_rate,
            }),
        }
    }

    /// Returns the rules; `None` for an invalid number.
    fn rules(&self) -> Option<Rules> {
        let widths = [Width::Bits64, Width::Bits128];
        let width = widths.into_iter().find(|width| width.bits() as c_int == self.width)?;
        let (_, order) =
            VisitOrder::ALL.into_iter().find(|(order, _)| *order as c_int == self.order)?;
        Some(Rules {
            width,
            order,
            // `false` is the behaviour before Linux 6.4, which is for replays of recordings.
            track_regions: true,
            window_before_test: self.window_before_test != 0,
            once_per_sequence: self.once_per_sequence != 0,
            complete_partial: self.complete_partial != 0,
            scan_one_inactive: self.scan_one_inactive != 0,
            per_region_cycles: self.per_region_cycles != 0,
            scan_starved: self.scan_starved != 0,
        })
    }
}

/// Converts a duration to nanoseconds, at most 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Creates a balancer with the caller's settings.
///
/// # Safety
///
/// The pointer is valid, and the structure has as many written bytes as its `size`.
pub(crate) unsafe fn balancer(settings: *const Settings) -> Result<percid_numa::Balancer, c_int> {
    // SAFETY: the caller guarantees a valid structure; the size comes first in every version.
    let size = unsafe { (&raw const (*settings).size).read() };
    if size < size_of::<Settings>() {
        return Err(-libc::EINVAL);
    }
    // SAFETY: the caller guarantees as many written bytes as `size`, which is at least this
    // version's.
    let settings = unsafe {
        if !sized::is_known(settings, size) {
            return Err(-libc::E2BIG);
        }
        &*settings
    };
    let rules = settings.rules().ok_or(-libc::EINVAL)?;
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
        // SAFETY: the caller guarantees a structure of `size` bytes.
        unsafe { sized::store(settings, size, &published) }
    })
}

/// Sets the rules of a scan in `settings`, from `order` on, as in a release of Linux: `rules` is
/// one of enum percid_scan_rules. The width is unchanged.
///
/// Returns 0, or -EINVAL for NULL, settings that percid_balancer_settings_init() has not filled, or
/// an unknown number.
///
/// # Safety
///
/// `settings` is NULL or points to as many bytes as the `size` in it says, all of them written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_balancer_settings_set_rules(
    settings: *mut Settings,
    rules: c_int,
) -> c_int {
    let sets = [
        (RuleSet::Base, Rules::BASE),
        (RuleSet::Selective, Rules::SELECTIVE),
        (RuleSet::Fixed, Rules::LINUX_6_12),
    ];
    let found = sets.into_iter().find(|(set, _)| *set as c_int == rules);
    // SAFETY: the caller guarantees a valid structure; the size comes first in every version.
    if settings.is_null() || unsafe { (&raw const (*settings).size).read() } < size_of::<Settings>()
    {
        return -libc::EINVAL;
    }
    let Some((_, rules)) = found else { return -libc::EINVAL };
    // SAFETY: the caller guarantees as many bytes as the structure's size, which is at least this
    // version's.
    let settings = unsafe { &mut *settings };
    *settings = Settings { width: settings.width, ..settings.with_rules(rules) };
    0
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
    fn every_rule_can_be_set_by_itself_and_as_linux_has_them() {
        let mut settings = Settings::published();
        // SAFETY: the structure has this version's size.
        let mut set = |rules| unsafe {
            let result = percid_balancer_settings_set_rules(&mut settings, rules);
            (result, settings.rules())
        };
        let all = [Rules::BASE, Rules::SELECTIVE, Rules::LINUX_6_12];
        for (number, rules) in (1..).zip(all) {
            assert_eq!(set(number), (0, Some(rules)));
        }
        assert_eq!(set(0).0, -libc::EINVAL);
        assert_eq!(set(4), (-libc::EINVAL, Some(Rules::LINUX_6_12)));
        let fixed = Settings::published();
        let single = [
            (
                Settings { window_before_test: 0, ..fixed },
                Rules { window_before_test: false, ..all[2] },
            ),
            (
                Settings { once_per_sequence: 0, ..fixed },
                Rules { once_per_sequence: false, ..all[2] },
            ),
            (
                Settings { complete_partial: 0, ..fixed },
                Rules { complete_partial: false, ..all[2] },
            ),
            (
                Settings { scan_one_inactive: 0, ..fixed },
                Rules { scan_one_inactive: false, ..all[2] },
            ),
            (
                Settings { per_region_cycles: 0, ..fixed },
                Rules { per_region_cycles: false, ..all[2] },
            ),
            (Settings { scan_starved: 0, ..fixed }, Rules { scan_starved: false, ..all[2] }),
            (Settings { order: 2, ..fixed }, Rules { order: Order::Activity, ..all[2] }),
            (Settings { width: 128, ..fixed }, Rules { width: Width::Bits128, ..all[2] }),
        ];
        for (settings, rules) in single {
            assert_eq!(settings.rules(), Some(rules));
            assert_eq!(Settings { width: 64, ..settings }.with_rules(rules), settings);
        }
    }

    #[test]
    fn memory_tiers_are_off_until_they_are_asked_for() {
        let settings = Settings::published();
        assert_eq!(settings.constants().tiers, None);
        assert_eq!(Settings { tiers: 1, ..settings }.constants().tiers, Some(Tiers::default()));
        let changed = Settings { tiers: 1, cold_after_ns: 7, tiers_rate: 9, ..settings };
        let Tiers { cold_after, rate, .. } = changed.constants().tiers.expect("asked for");
        assert_eq!((cold_after, rate), (Duration::from_nanos(7), 9));
    }

    #[test]
    fn no_byte_is_padding() {
        assert_eq!(size_of::<Settings>(), size_of::<[u64; 12]>() + size_of::<[c_int; 10]>());
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        let good = Settings::published();
        let refused = |settings: Settings| {
            // SAFETY: the structure has this version's size.
            unsafe { balancer(&settings) }.err()
        };
        assert_eq!(refused(good), None);
        assert_eq!(refused(Settings { order: 2, width: 128, ..good }), None);
        for bad in [
            Settings { order: 0, ..good },
            Settings { order: 3, ..good },
            Settings { width: 65, ..good },
            Settings { tiers: 1, tiers_rate: 0, ..good },
            Settings { size: good.size - 1, ..good },
            Settings { batch: 0, ..good },
        ] {
            assert_eq!(refused(bad), Some(-libc::EINVAL), "{bad:?}");
        }
        assert_eq!(refused(Settings { tiers_rate: 0, ..good }), None, "not asked for");
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
            // SAFETY: the structure has the size that it contains.
            unsafe { balancer((&raw const later).cast()) }.err()
        };
        assert_eq!((refused(0), refused(1)), (None, Some(-libc::E2BIG)));
    }
}
