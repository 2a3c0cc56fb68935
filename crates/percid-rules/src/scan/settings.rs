//! The constants of scanning and migration.

use core::fmt;
use core::time::Duration;

use super::tiers::Tiers;

const MIB: u64 = 1 << 20;

/// Memory that a pass may inspect, in multiples of the memory that it may arm.
const LOOK: u64 = 8;
/// The longest time: sums and multiples of times stay far below the maximum of the type.
const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// The length of an activity window, in multiples of the scan delay.
const WINDOW: u32 = 4;

/// The constants of the scan, all of which may be changed. The first five and their values are the
/// published ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Time before a new region is scanned; 1 s.
    pub scan_delay: Duration,
    /// Memory that a pass may arm, in bytes; 256 MiB. It may inspect eight times as much.
    pub scan_size: u64,
    /// The shortest time in which all regions together are scanned once; 1 s.
    pub period_min: Duration,
    /// The longest such time; 60 s.
    pub period_max: Duration,
    /// Memory that may be armed per second, in bytes; 2560 MiB.
    pub max_rate: u64,
    /// Memory that one system call may move at most, in bytes; 8 MiB, percid's own value. During
    /// the call, threads of the program may have to wait for a page fault or a mapping of their
    /// own.
    pub batch: u64,
    /// Approximate time for which one system call may move pages; 10 ms, percid's own value. The
    /// previous calls determine the number of pages, at least 64 KiB; a call may always take four
    /// times its fixed cost.
    pub batch_time: Duration,
    /// Memory that may be moved per second, in bytes; as much as may be armed, percid's own value.
    pub bandwidth: u64,
    /// `true` if pages that were moved before need more evidence to be moved again. This is
    /// percid's own addition: without it, memory that two nodes share by chance keeps moving.
    pub backoff: bool,
    /// The constants with which unused memory is demoted to nodes without CPUs, and used memory is
    /// promoted from there. With `None` neither happens; this is the published default.
    pub tiers: Option<Tiers>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scan_delay: Duration::from_secs(1),
            scan_size: 256 * MIB,
            period_min: Duration::from_secs(1),
            period_max: Duration::from_secs(60),
            max_rate: 2560 * MIB,
            batch: 8 * MIB,
            batch_time: Duration::from_millis(10),
            bandwidth: 2560 * MIB,
            backoff: true,
            tiers: None,
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadSetting {
    /// The size or rate with this name is zero.
    Zero(&'static str),
    /// The time with this name is longer than a year.
    TooLong(&'static str),
    /// The shortest period is longer than the longest one.
    Periods,
    /// The scan size is so large that eight times as much, which a pass may inspect, overflows.
    ScanSize,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSetting::Zero(name) => write!(f, "{name} is 0: expected a number of bytes"),
            BadSetting::TooLong(name) => write!(f, "{name} is longer than a year"),
            BadSetting::Periods => f.write_str("period_min is longer than period_max"),
            BadSetting::ScanSize => write!(f, "scan_size is larger than {} bytes", largest_scan()),
        }
    }
}

impl core::error::Error for BadSetting {}

fn largest_scan() -> u64 {
    i64::MAX as u64 / LOOK
}

impl Settings {
    /// Checks that the scan can use these settings.
    ///
    /// # Errors
    ///
    /// The first setting that it cannot use.
    pub fn check(&self) -> Result<(), BadSetting> {
        let sizes = [
            ("scan_size", self.scan_size),
            ("max_rate", self.max_rate),
            ("batch", self.batch),
            ("bandwidth", self.bandwidth),
            ("rate", self.tiers.map_or(1, |tiers| tiers.rate)),
        ];
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(BadSetting::Zero(name));
        }
        let times = [
            ("scan_delay", self.scan_delay),
            ("period_min", self.period_min),
            ("period_max", self.period_max),
            ("batch_time", self.batch_time),
            ("cold_after", self.tiers.map_or(Duration::ZERO, |tiers| tiers.cold_after)),
            ("hot_threshold", self.tiers.map_or(Duration::ZERO, |tiers| tiers.hot_threshold)),
        ];
        if let Some((name, _)) = times.into_iter().find(|(_, time)| *time > MAX_TIME) {
            return Err(BadSetting::TooLong(name));
        }
        if self.scan_size > largest_scan() {
            return Err(BadSetting::ScanSize);
        }
        if self.period_min > self.period_max {
            return Err(BadSetting::Periods);
        }
        Ok(())
    }

    /// Returns the memory that a pass may inspect, in bytes.
    pub fn look_size(&self) -> u64 {
        self.scan_size * LOOK
    }

    /// Returns the minimum time for which a thread counts as a user of a region; the maximum is
    /// twice as long.
    pub(super) fn window(&self) -> Duration {
        self.scan_delay * WINDOW
    }

    /// Returns the shortest and the longest period between two passes over `bytes` of memory, in
    /// whole milliseconds as in Linux.
    pub fn periods(&self, bytes: u64) -> (Duration, Duration) {
        let passes = bytes.div_ceil(self.scan_size).clamp(1, u64::from(u32::MAX)) as u32;
        let whole = |time: Duration| Duration::from_millis(time.as_millis() as u64);
        // The period at which passes arm memory at the greatest rate.
        let at_rate = Duration::from_millis(1000 / (self.max_rate / self.scan_size).max(1));
        let shortest = at_rate.max(whole(self.period_min / passes));
        (shortest, shortest.max(whole(self.period_max / passes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_the_published_ones() {
        let settings = Settings::default();
        let of = |mib: u64| {
            let (shortest, longest) = settings.periods(mib * MIB);
            (shortest.as_millis(), longest.as_millis())
        };
        assert_eq!(of(0), (1000, 60_000));
        assert_eq!(of(512), (500, 30_000));
        assert_eq!(of(3072), (100, 5000), "the greatest rate bounds it");
        assert_eq!(of(3073), (100, 4615), "60 s in 13 passes");
    }

    #[test]
    fn passes_over_much_memory_are_bounded_by_the_rate_and_the_type() {
        let settings = Settings { period_min: Duration::from_millis(1), ..Settings::default() };
        for (max_rate, shortest) in [(1, 1000), (256, 1000), (512, 500), (2560, 100)] {
            let settings = Settings { max_rate: max_rate * MIB, ..settings };
            assert_eq!(settings.periods(1 << 40).0.as_millis(), shortest, "{max_rate} MiB/s");
        }
        // More passes than the type counts, each with a ten-thousandth of a millisecond.
        let bytewise = Settings { scan_size: 1, max_rate: 1 << 40, ..settings };
        assert_eq!(bytewise.periods(u64::MAX), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let (second, gib) = (Duration::from_secs(1), 1024 * MIB);
        let expected = Settings {
            scan_delay: second,
            scan_size: gib / 4,
            period_min: second,
            period_max: 60 * second,
            max_rate: 2 * gib + gib / 2,
            batch: gib / 128,
            batch_time: second / 100,
            bandwidth: 2 * gib + gib / 2,
            backoff: true,
            tiers: None,
        };
        assert_eq!(Settings::default(), expected);
        assert_eq!(expected.look_size(), 2 * gib);
        let tiers = Tiers { cold_after: 120 * second, hot_threshold: second, rate: gib / 8 };
        assert_eq!(Tiers::default(), tiers);
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        let (good, tiers) = (Settings::default(), Tiers::default());
        assert_eq!(good.check(), Ok(()));
        assert_eq!(Settings { tiers: Some(tiers), ..good }.check(), Ok(()));
        let nothing = [
            ("scan_size", Settings { scan_size: 0, ..good }),
            ("max_rate", Settings { max_rate: 0, ..good }),
            ("batch", Settings { batch: 0, ..good }),
            ("bandwidth", Settings { bandwidth: 0, ..good }),
            ("rate", Settings { tiers: Some(Tiers { rate: 0, ..tiers }), ..good }),
        ];
        for (name, bad) in nothing {
            assert_eq!(bad.check(), Err(BadSetting::Zero(name)));
        }
        let endless = Duration::MAX;
        let too_long = [
            ("scan_delay", Settings { scan_delay: endless, ..good }),
            ("period_min", Settings { period_min: endless, period_max: endless, ..good }),
            ("period_max", Settings { period_max: endless, ..good }),
            ("batch_time", Settings { batch_time: endless, ..good }),
            (
                "cold_after",
                Settings { tiers: Some(Tiers { cold_after: endless, ..tiers }), ..good },
            ),
            (
                "hot_threshold",
                Settings { tiers: Some(Tiers { hot_threshold: endless, ..tiers }), ..good },
            ),
        ];
        for (name, bad) in too_long {
            assert_eq!(bad.check(), Err(BadSetting::TooLong(name)));
        }
        let huge = Settings { scan_size: u64::MAX, ..good };
        assert_eq!(huge.check(), Err(BadSetting::ScanSize));
        let swapped = Settings { period_max: Duration::ZERO, ..good };
        assert_eq!(swapped.check(), Err(BadSetting::Periods));
        // The first of several bad settings is reported.
        let both = Settings { scan_size: 0, bandwidth: 0, ..good };
        assert_eq!(both.check(), Err(BadSetting::Zero("scan_size")));
        let both = Settings { scan_delay: endless, batch_time: endless, ..good };
        assert_eq!(both.check(), Err(BadSetting::TooLong("scan_delay")));
    }

    #[test]
    fn the_largest_settings_work() {
        let year = Duration::from_secs(31_536_000);
        let largest = Settings {
            scan_delay: year,
            period_min: year,
            period_max: year,
            scan_size: i64::MAX as u64 / 8,
            ..Settings::default()
        };
        assert_eq!(largest.check(), Ok(()));
        let longer = Settings { scan_delay: year + Duration::from_nanos(1), ..largest };
        assert_eq!(longer.check(), Err(BadSetting::TooLong("scan_delay")));
        let larger = Settings { scan_size: largest.scan_size + 1, ..largest };
        assert_eq!(larger.check(), Err(BadSetting::ScanSize));
    }

    #[test]
    fn a_bad_setting_says_what_is_wrong() {
        for (bad, text) in [
            (BadSetting::Zero("batch"), "batch is 0: expected a number of bytes"),
            (BadSetting::TooLong("scan_delay"), "scan_delay is longer than a year"),
            (BadSetting::Periods, "period_min is longer than period_max"),
            (BadSetting::ScanSize, "scan_size is larger than 1152921504606846975 bytes"),
        ] {
            assert_eq!(std::format!("{bad}"), text);
        }
    }
}
