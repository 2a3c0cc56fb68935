//! Memory of two speeds: the pages that move to the slow nodes, and those that return.
//!
//! A *slow node* has memory and no CPUs: memory behind CXL, or persistent memory. To *demote* a
//! page is to move it there because nothing used it; to *promote* it is to move it to the node of
//! the thread that uses it. The following rules are published, except for the parts that are marked
//! as percid's own:
//!
//! * **Hot pages** (Linux 6.1, commit 33024536bafd): the time from arming a page to its next access
//!   indicates how often the page is used. The page is promoted if that time is shorter than a
//!   threshold.
//! * **The rate** (commit c6833e10008f): pages beyond a promotion rate stay on their node. Each is
//!   judged again after it was armed again.
//! * **The threshold** (commit c959924b0dc5) follows the workload: from time to time it is changed
//!   by a step, so that about as much memory is hot as may be promoted.
//! * **Cold pages** are percid's own rule: Linux demotes when a node has too little free memory,
//!   which a program does not know about its machine. So pages are demoted that were armed for a
//!   long time and not used.
//!
//! One published rule is left out: if a fast node has plenty of free memory, Linux promotes every
//! page that is used at all.
//!
//! ```
//! use std::time::Duration;
//! use percid_rules::scan::{Stamp, Tiers};
//!
//! let tiers = Tiers::default();
//! let armed = Stamp::from_time(Duration::from_secs(7));
//! let age = |seconds| armed.age(Duration::from_secs_f64(seconds));
//! assert!(tiers.is_cold(age(127.0)), "armed for two minutes, and still not used");
//! assert!(age(7.5) < tiers.hot_threshold, "used half a second after it was armed");
//! ```

use alloc::vec::Vec;
use core::time::Duration;

const MIB: u64 = 1 << 20;

/// Number of steps in the greatest value of the threshold, which is twice the setting (published).
const STEPS: u32 = 16;
/// The inverse of the tolerance: the threshold changes if hot memory and promotable memory differ
/// by more than one tenth (published).
const TOLERANCE: u128 = 10;

/// The constants of memory tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiers {
    /// Memory that was armed for this time and not used is cold; 120 s. That is the shortest time
    /// after which "Software-Defined Far Memory in Warehouse-Scale Computers" (Lagar-Cavilla and
    /// others, ASPLOS 2019) calls memory cold. With a year, the longest time, nothing is demoted.
    pub cold_after: Duration,
    /// A page is hot initially if it is used sooner than this after it was armed; 1 s as published.
    /// With 0 nothing is promoted.
    pub hot_threshold: Duration,
    /// Memory that may be promoted per second, and as much demoted, in bytes; 128 MiB, percid's own
    /// value. The published value is 64 GiB, which limits nothing; the published measurements use
    /// about 160 MB.
    pub rate: u64,
}

impl Default for Tiers {
    fn default() -> Tiers {
        Tiers {
            cold_after: Duration::from_secs(120),
            hot_threshold: Duration::from_secs(1),
            rate: 128 * MIB,
        }
    }
}

impl Tiers {
    /// Returns `true` if a page that was armed so long ago and not used since must be demoted.
    pub fn is_cold(&self, untouched: Duration) -> bool {
        untouched >= self.cold_after
    }
}

/// The time at which a page was armed, in one word. The unit is a hundredth of a second, which is
/// precise enough for times that make a page hot or cold. It wraps around after more than a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(u32);

impl Stamp {
    const TICK_MS: u128 = 10;

    /// Returns the stamp of a time since some fixed time, which is the same for all stamps.
    pub fn from_time(now: Duration) -> Stamp {
        Stamp((now.as_millis() / Stamp::TICK_MS) as u32)
    }

    /// Returns the stamp that [`Stamp::word`] encoded.
    pub fn from_word(word: u32) -> Stamp {
        Stamp(word)
    }

    /// Returns the stamp as one word, for example for an atomic.
    pub fn word(self) -> u32 {
        self.0
    }

    /// Returns the time between the stamp and `now`.
    pub fn age(self, now: Duration) -> Duration {
        let ticks = Stamp::from_time(now).0.wrapping_sub(self.0);
        Duration::from_millis(u64::from(ticks) * Stamp::TICK_MS as u64)
    }
}

/// The time after arming within which a hot page must be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotThreshold {
    setting: Duration,
    now: Duration,
    /// The time since which hot memory is counted; `before` is the amount at that time.
    since: Duration,
    before: u64,
}

impl HotThreshold {
    /// Creates the threshold of the settings, counting from `now` on.
    pub fn new(tiers: &Tiers, now: Duration) -> HotThreshold {
        let setting = tiers.hot_threshold;
        HotThreshold { setting, now: setting, since: now, before: 0 }
    }

    /// Returns the current threshold.
    pub fn get(&self) -> Duration {
        self.now
    }

    /// Adapts the threshold to the workload: `hot` bytes were found hot so far, promoted or not,
    /// and `rate` bytes may be promoted per second. The count covers at least `interval`. Its
    /// published value is the longest period between two passes: all memory was armed once in that
    /// time, so the position of the hot memory does not matter.
    pub fn adapt(&mut self, now: Duration, hot: u64, rate: u64, interval: Duration) {
        let counted = now.saturating_sub(self.since);
        if counted < interval || counted.is_zero() {
            return;
        }
        // The count is lower than before if a region was removed.
        let found = u128::from(hot.saturating_sub(self.before)) * 1000;
        let wanted = u128::from(rate) * counted.as_millis();
        let step = self.setting * 2 / STEPS;
        if found > wanted + wanted / TOLERANCE {
            self.now = self.now.saturating_sub(step).max(step);
        } else if found < wanted - wanted / TOLERANCE {
            self.now = (self.now + step).min(self.setting * 2);
        }
        (self.since, self.before) = (now, hot);
    }
}

/// The unused part of a rate in the current second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    rate: u64,
    since: Option<Duration>,
    used: u64,
}

impl RateLimit {
    const WINDOW: Duration = Duration::from_secs(1);

    /// Creates a limit of `rate` bytes per second.
    pub fn new(rate: u64) -> RateLimit {
        RateLimit { rate, since: None, used: 0 }
    }

    /// Returns `true` if so many bytes may move now, and counts them. The first request of a second
    /// is always admitted: otherwise pages larger than the rate would never move.
    pub fn admit(&mut self, now: Duration, bytes: u64) -> bool {
        if self.since.is_none_or(|since| now.saturating_sub(since) >= RateLimit::WINDOW) {
            (self.since, self.used) = (Some(now), 0);
        }
        let used = self.used.saturating_add(bytes);
        if used > self.rate && self.used > 0 {
            return false;
        }
        self.used = used;
        true
    }
}

/// A node as described by the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeTraits {
    /// Its number.
    pub node: u32,
    /// `true` if it has CPUs.
    pub has_cpus: bool,
    /// `true` if it has memory.
    pub has_memory: bool,
    /// Its tier; a larger one is slower. `None` if the system has no tiers.
    pub tier: Option<u32>,
}

/// Returns the slow nodes of a machine: those with memory and without CPUs. A node that the system
/// counts to a faster tier than all nodes with CPUs is not slow (memory on the processor's
/// package). In the same tier it is slow: Linux puts all memory there that the firmware does not
/// describe.
pub fn slow_nodes(nodes: &[NodeTraits]) -> Vec<u32> {
    let with_cpus = nodes.iter().filter(|node| node.has_cpus && node.has_memory);
    let fastest = with_cpus.filter_map(|node| node.tier).min();
    let is_faster = |node: &&NodeTraits| match (node.tier, fastest) {
        (Some(tier), Some(fastest)) => tier < fastest,
        _ => false,
    };
    let slow = nodes.iter().filter(|node| node.has_memory && !node.has_cpus);
    slow.filter(|node| !is_faster(node)).map(|node| node.node).collect()
}

/// Returns the slow node that pages of a node are demoted to: the nearest one, and among equally
/// near ones that with the smallest number.
pub fn nearest(slow: &[u32], distance: impl Fn(u32) -> u32) -> Option<u32> {
    slow.iter().copied().min_by_key(|&node| (distance(node), node))
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Returns a threshold of 1 s after these shares of the promotable memory were found hot, in
    /// tenths.
    fn after(tenths: &[u64]) -> Duration {
        let mut threshold = HotThreshold::new(&Tiers::default(), Duration::ZERO);
        let mut hot = 0;
        for (turn, tenths) in tenths.iter().enumerate() {
            hot += 60 * 100 * tenths;
            threshold.adapt(seconds(60 * (turn as u64 + 1)), hot, 1000, 60 * SECOND);
        }
        threshold.get()
    }

    #[test]
    fn the_threshold_follows_in_steps_as_published() {
        assert_eq!(after(&[]), SECOND);
        assert_eq!(after(&[12]), Duration::from_millis(875), "an eighth of the setting");
        assert_eq!(after(&[8]), Duration::from_millis(1125));
        for tenths in [9, 10, 11] {
            assert_eq!(after(&[tenths]), SECOND, "near enough");
        }
    }

    /// All sequences of too much, enough and too little hot memory.
    #[test]
    fn the_threshold_stays_between_one_step_and_twice_the_setting() {
        let (least, most) = (Duration::from_millis(125), 2 * SECOND);
        let mut extremes = (most, least);
        for code in 0..3u32.pow(10) {
            let tenths: Vec<u64> =
                (0..10).map(|place| u64::from(code / 3u32.pow(place) % 3) * 10).collect();
            let threshold = after(&tenths);
            assert!((least..=most).contains(&threshold), "{tenths:?}: {threshold:?}");
            extremes = (extremes.0.min(threshold), extremes.1.max(threshold));
        }
        assert_eq!(extremes, (least, most), "both ends are reached");
    }

    #[test]
    fn nothing_is_adapted_before_the_interval_is_over() {
        let mut threshold = HotThreshold::new(&Tiers::default(), Duration::ZERO);
        threshold.adapt(seconds(59), u64::MAX, 1, 60 * SECOND);
        assert_eq!(threshold.get(), SECOND);
        threshold.adapt(seconds(60), u64::MAX, 1, 60 * SECOND);
        assert!(threshold.get() < SECOND);
    }

    #[test]
    fn nothing_is_adapted_where_no_time_has_passed() {
        let mut threshold = HotThreshold::new(&Tiers::default(), Duration::ZERO);
        threshold.adapt(Duration::ZERO, 1, 1, Duration::ZERO);
        assert_eq!(threshold.get(), SECOND);
    }

    #[test]
    fn a_threshold_of_nothing_stays_nothing() {
        let none = Tiers { hot_threshold: Duration::ZERO, ..Tiers::default() };
        let mut threshold = HotThreshold::new(&none, Duration::ZERO);
        (1..40).for_each(|turn| threshold.adapt(seconds(60 * turn), 0, 1000, 60 * SECOND));
        assert_eq!(threshold.get(), Duration::ZERO);
    }

    /// Returns the share of hot pages with a threshold. The pages are used periodically, at times
    /// that are independent of the arming.
    fn hot_share(every: Duration, threshold: Duration) -> f64 {
        (threshold.as_secs_f64() / every.as_secs_f64()).min(1.0)
    }

    /// Finally about as much memory is hot as may be promoted, or the threshold is at a bound.
    #[test]
    fn what_is_hot_comes_to_match_the_rate() {
        let rate = 10 * MIB;
        for pages in [100u64, 1_000, 10_000, 100_000, 1_000_000, 10_000_000] {
            for every in [1, 3, 10, 100, 1000] {
                let mut threshold = HotThreshold::new(&Tiers::default(), Duration::ZERO);
                let found = |threshold: Duration| {
                    (hot_share(seconds(every), threshold) * (pages * 4096) as f64) as u64
                };
                let mut hot = 0;
                for turn in 1..40 {
                    hot += found(threshold.get());
                    threshold.adapt(seconds(60 * turn), hot, rate, seconds(60));
                }
                let (last, wanted) = (found(threshold.get()), 60 * rate);
                let step = Duration::from_millis(125);
                let one_step = found(threshold.get() + step) - found(threshold.get() - step);
                let matches = last.abs_diff(wanted) <= wanted / 10 + one_step;
                let at_end = (last < wanted && threshold.get() == 2 * SECOND)
                    || (last > wanted && threshold.get() == step);
                assert!(matches || at_end, "{pages} every {every} s: {last} of {wanted}");
            }
        }
    }

    /// Tests all sequences of requests at these times: no second has more than the rate.
    #[test]
    fn no_second_has_more_than_the_rate() {
        let gaps = [0, 100, 400, 1000].map(Duration::from_millis);
        let sizes = [1, 4, 7];
        for code in 0..12u32.pow(5) {
            let (mut limit, mut now) = (RateLimit::new(10), Duration::ZERO);
            let mut moved = Vec::new();
            for place in 0..5 {
                let choice = (code / 12u32.pow(place) % 12) as usize;
                now += gaps[choice / 3];
                if limit.admit(now, sizes[choice % 3]) {
                    moved.push((now, sizes[choice % 3]));
                }
            }
            // Windows do not begin at full seconds: two of them may overlap one second.
            for &(from, _) in &moved {
                let within = moved.iter().filter(|(at, _)| (from..from + SECOND).contains(at));
                let sum: u64 = within.map(|(_, bytes)| bytes).sum();
                assert!(sum <= 2 * 10, "{moved:?}");
            }
            let since_first = moved.iter().filter(|(at, _)| *at < moved[0].0 + SECOND);
            assert!(since_first.map(|(_, bytes)| bytes).sum::<u64>() <= 10, "{moved:?}");
        }
    }

    /// A warm set larger than the rate: all of it is hot every second, and a part moves.
    #[test]
    fn a_warm_set_larger_than_the_rate_moves_at_the_rate() {
        let moved = |rate: u64| {
            let mut limit = RateLimit::new(rate);
            let mut ask = |at: u64| limit.admit(Duration::from_millis(at), 4096);
            (0..10_000).filter(|at| ask(at / 10 * 10)).count()
        };
        assert_eq!(moved(100 * 4096), 10 * 100, "ten seconds");
        assert_eq!(moved(u64::MAX), 10_000, "without a limit all of it would");
    }

    #[test]
    fn all_of_the_rate_may_be_used_in_each_second() {
        let mut limit = RateLimit::new(10);
        let asked = [
            (5, 10, true),
            (5, 1, false),
            (6, 9, true),
            (6, 1, true),
            (7, 1, true),
            (7, 10, false),
        ];
        for (at, bytes, admitted) in asked {
            assert_eq!(limit.admit(seconds(at), bytes), admitted, "{at} s");
        }
    }

    #[test]
    fn a_page_larger_than_the_rate_moves_once_a_second() {
        let mut limit = RateLimit::new(1);
        let times = [0, 1, 999, 1000, 1500].map(Duration::from_millis);
        let admitted = times.map(|at| limit.admit(at, 2 * MIB));
        assert_eq!(admitted, [true, false, false, true, false]);
    }

    #[test]
    fn a_stamp_is_in_hundredths_of_a_second() {
        assert_eq!(Stamp::from_time(Duration::from_millis(1019)).word(), 101);
    }

    #[test]
    fn stamps_say_how_long_ago_it_was_for_a_year() {
        let year = seconds(365 * 24 * 3600);
        for began in [Duration::ZERO, seconds(5), year, 2 * year] {
            let stamp = Stamp::from_word(Stamp::from_time(began).word());
            for age in [Duration::ZERO, Duration::from_millis(990), 120 * SECOND, year] {
                assert_eq!(stamp.age(began + age), age, "{began:?}");
            }
        }
    }

    #[test]
    fn what_is_not_used_for_long_is_cold() {
        let tiers = Tiers::default();
        assert!(!tiers.is_cold(Duration::from_millis(119_990)) && tiers.is_cold(120 * SECOND));
    }

    fn node(node: u32, has_cpus: bool, tier: Option<u32>) -> NodeTraits {
        NodeTraits { node, has_cpus, has_memory: true, tier }
    }

    #[test]
    fn nodes_without_cpus_are_slow_unless_the_system_says_they_are_fast() {
        assert_eq!(slow_nodes(&[node(0, true, None), node(1, false, None)]), [1]);
        let in_tiers = [node(0, true, Some(4)), node(1, false, Some(4)), node(2, false, Some(22))];
        assert_eq!(slow_nodes(&in_tiers), [1, 2]);
        let on_package = [node(0, true, Some(4)), node(1, false, Some(3))];
        assert_eq!(slow_nodes(&on_package), vec![0; 0]);
        let of_two = [node(0, true, Some(6)), node(1, true, Some(2)), node(2, false, Some(4))];
        assert_eq!(slow_nodes(&of_two), [2], "slower than one of them");
        let bare = NodeTraits { has_memory: false, ..node(3, true, Some(2)) };
        let beside_bare = [node(0, true, Some(4)), node(1, false, Some(3)), bare];
        assert_eq!(slow_nodes(&beside_bare), vec![0; 0], "a node without memory is not faster");
        assert_eq!(slow_nodes(&[node(0, true, None), node(1, true, None)]), vec![0; 0]);
        let empty = NodeTraits { has_memory: false, ..node(1, false, None) };
        assert_eq!(slow_nodes(&[node(0, true, None), empty]), vec![0; 0]);
    }

    #[test]
    fn pages_go_to_the_nearest_slow_node() {
        let distances = [10, 20, 30, 17, 17];
        assert_eq!(nearest(&[2, 3, 4], |node| distances[node as usize]), Some(3));
        assert_eq!(nearest(&[], |_| 0), None);
    }
}
