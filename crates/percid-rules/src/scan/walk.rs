//! One pass of the scan over the regions: it arms some, and skips others for a reason. It changes
//! only the scan's own state, and reports to [`Effects`].

use core::time::Duration;

use super::rules::{Order, Rules};
use super::settings::Settings;
use super::state::Scan;
use super::visit::{Effects, Pass, Scanner};
use super::{by_activity, by_address};

impl Scan {
    /// Makes one pass at `now`, which is measured from any fixed time. Has no effect without
    /// regions. The cost is one step per region and the cost of [`Effects::arm`].
    pub fn pass(
        &mut self,
        scanner: Scanner,
        now: Duration,
        settings: &Settings,
        rules: &Rules,
        effects: &mut impl Effects,
    ) {
        if self.regions.is_empty() {
            return;
        }
        let (arm, look) = (settings.scan_size as i64, settings.look_size() as i64);
        let mut pass = Pass { scan: self, scanner, now, settings, rules, effects, arm, look };
        match rules.order {
            Order::Address => by_address::run(&mut pass),
            Order::Activity => by_activity::run(&mut pass),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;
    use std::borrow::ToOwned;
    use std::format;
    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::super::activity::Width;
    use super::super::region::{Policy, SkipReason, Traits};
    use super::*;

    const MIB: u64 = 1 << 20;
    const ME: Scanner = Scanner { thread: 100, balances: true, threads: 4 };

    /// The log in short: `arm A..B` in MiB, or a reason.
    #[derive(Default)]
    struct Log(Vec<(u64, String)>);

    impl Effects for Log {
        fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
            assert!(self.0.len() < 1000, "the pass does not end");
            self.0.push((region / MIB, format!("arm {}..{}", part.start / MIB, part.end / MIB)));
            1
        }

        fn note(&mut self, region: u64, reason: SkipReason) {
            self.0.push((region / MIB, reason.to_string()));
        }
    }

    fn pass_by(scan: &mut Scan, thread: u32, seconds: u64, rules: &Rules) -> Vec<(u64, String)> {
        let mut log = Log::default();
        let scanner = Scanner { thread, ..ME };
        let now = Duration::from_secs(seconds);
        scan.pass(scanner, now, &Settings::default(), rules, &mut log);
        log.0
    }

    fn pass(scan: &mut Scan, seconds: u64, rules: &Rules) -> Vec<(u64, String)> {
        pass_by(scan, ME.thread, seconds, rules)
    }

    fn done(region: u64, what: &str) -> (u64, String) {
        (region, what.to_owned())
    }

    /// Returns a scan past its blind sequences, over unused regions with these starts and ends in
    /// MiB.
    fn grown(regions: &[(u64, u64)]) -> Scan {
        let mut scan = Scan::new();
        for &(start, end) in regions {
            assert!(scan.add(start * MIB..end * MIB, Traits::ANONYMOUS));
        }
        scan.sequence = 5;
        pass(&mut scan, 0, &Rules::SELECTIVE);
        scan
    }

    #[test]
    fn obstacles_come_in_the_published_order() {
        let hidden = Traits { readable: false, writable: false, ..Traits::ANONYMOUS };
        let file = Traits { file: true, writable: false, ..Traits::ANONYMOUS };
        let traits = [
            Traits { movable: false, ..file },
            Traits { policy: Some(Policy::Fixed), ..hidden },
            file,
            hidden,
        ];
        let mut scan = Scan::new();
        for (place, traits) in (0..).zip(traits) {
            scan.add(place * MIB..(place + 1) * MIB, traits);
        }
        let reasons: Vec<String> =
            pass(&mut scan, 0, &Rules::BASE).into_iter().map(|(_, what)| what).collect();
        assert_eq!(reasons, ["unsuitable", "unsuitable", "shared_ro", "inaccessible"]);
    }

    #[test]
    fn a_scanner_that_does_not_balance_leaves_regions_without_a_policy_out() {
        let mut scan = Scan::new();
        scan.add(0..MIB, Traits::ANONYMOUS);
        scan.add(MIB..2 * MIB, Traits { policy: Some(Policy::Balancing), ..Traits::ANONYMOUS });
        let mut log = Log::default();
        let bound = Scanner { balances: false, ..ME };
        scan.pass(bound, Duration::ZERO, &Settings::default(), &Rules::BASE, &mut log);
        assert_eq!(log.0, [done(0, "unsuitable"), done(1, "arm 1..2")]);
    }

    #[test]
    fn inactive_regions_are_forced_one_by_one_or_never() {
        let mut scan = grown(&[(0, 1), (1, 2)]);
        let left_out = [done(0, "pid_inactive"), done(1, "pid_inactive")];
        assert_eq!(pass(&mut scan.clone(), 2, &Rules::BASE), left_out);
        let forced = pass(&mut scan, 2, &Rules::SELECTIVE);
        assert_eq!(forced[2..], [done(0, "arm 0..1")]);
        let next = pass(&mut scan, 2, &Rules::SELECTIVE);
        assert_eq!(next, [done(1, "pid_inactive"), done(1, "arm 1..2")]);
    }

    #[test]
    fn a_partial_scan_is_completed_by_any_thread() {
        let mut scan = grown(&[(0, 300)]);
        pass(&mut scan, 2, &Rules::SELECTIVE);
        let lazy = Rules { complete_partial: false, scan_one_inactive: false, ..Rules::SELECTIVE };
        assert_eq!(pass(&mut scan.clone(), 2, &lazy), [done(0, "pid_inactive")]);
        let next = pass(&mut scan, 2, &Rules::SELECTIVE);
        assert_eq!(next, [done(0, "ignore_pid_inactive"), done(0, "arm 256..300")]);
    }

    #[test]
    fn users_are_forgotten_after_one_to_two_windows() {
        let mut scan = grown(&[(0, 1)]);
        scan.used_by(0, 1 << Width::Bits64.bit(ME.thread));
        assert_eq!(scan.users(0), 1);
        let rules =
            Rules { scan_one_inactive: false, once_per_sequence: false, ..Rules::SELECTIVE };
        for (second, seen) in [(2, true), (5, true), (9, true)] {
            let what = pass(&mut scan, second, &rules);
            assert_eq!(what == [done(0, "arm 0..1")], seen, "{second}: {what:?}");
        }
        // Each visit ends one window.
        pass(&mut scan, 30, &rules);
        assert_eq!(pass(&mut scan, 30, &rules), [done(0, "pid_inactive")]);
    }

    /// Two visits long after the first window has ended: in the first sequence they do not change
    /// it, later they end it and the one after it.
    #[test]
    fn windows_do_not_end_in_the_first_sequence() {
        for (sequence, users) in [(0, 1), (1, 0)] {
            for rules in [Rules::BASE, Rules { once_per_sequence: false, ..Rules::SELECTIVE }] {
                let mut scan = grown(&[(0, 1), (1, 2000)]);
                scan.used_by(0, 1 << Width::Bits64.bit(ME.thread));
                for second in [30, 31] {
                    (scan.sequence, scan.offset) = (sequence, 0);
                    let seen = pass(&mut scan, second, &rules);
                    assert_eq!(seen[0], done(0, "arm 0..1"), "{seen:?}");
                    assert_eq!(scan.sequence, sequence, "the pass ends in the second region");
                    assert!(second > 30 || scan.users(0) == 1, "one window a visit");
                }
                assert_eq!(scan.users(0), users, "{sequence}, {rules:?}");
            }
        }
    }

    #[test]
    fn a_region_is_scanned_once_in_a_sequence() {
        let mut scan = grown(&[(0, 1), (1, 2)]);
        scan.used_by(0, 1 << Width::Bits64.bit(ME.thread));
        let first = pass(&mut scan, 2, &Rules::SELECTIVE);
        let forced = done(1, "arm 1..2");
        assert_eq!(
            first[..],
            [done(0, "arm 0..1"), done(1, "pid_inactive"), done(0, "seq_completed"), forced]
        );
    }

    #[test]
    fn late_fixes_count_the_regions_own_sequences_and_end_starvation() {
        let fixed = Rules { scan_one_inactive: false, ..Rules::LINUX_6_12 };
        let scan = grown(&[(0, 1)]);
        assert_eq!(pass(&mut scan.clone(), 2, &fixed), [done(0, "arm 0..1")]);
        let turns = [(6, "arm 0..1"), (7, "pid_inactive"), (8, "pid_inactive"), (9, "arm 0..1")];
        for (sequence, what) in turns {
            let mut old = scan.clone();
            old.sequence = sequence;
            assert_eq!(pass(&mut old, 2, &fixed), [done(0, what)], "{sequence}");
        }
    }

    #[test]
    fn a_pass_that_changes_nothing_looks_at_eight_times_as_much() {
        struct Armed(u32);
        impl Effects for Armed {
            fn arm(&mut self, _: u64, _: Range<u64>) -> u64 {
                self.0 += 1;
                assert!(self.0 < 100, "the pass does not end");
                0
            }
            fn note(&mut self, _: u64, _: SkipReason) {}
        }
        let mut scan = Scan::new();
        scan.add(0..4096 * MIB, Traits::ANONYMOUS);
        let mut armed = Armed(0);
        scan.pass(ME, Duration::ZERO, &Settings::default(), &Rules::BASE, &mut armed);
        assert_eq!((armed.0, scan.offset), (8, 2048 * MIB));
    }

    #[test]
    fn the_order_by_activity_visits_users_first_and_one_idle_region() {
        let mut scan = grown(&[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
        let rules = Rules { order: Order::Activity, ..Rules::SELECTIVE };
        let users =
            |threads: &[u32]| threads.iter().fold(0, |set, &t| set | 1 << rules.width.bit(t));
        scan.used_by(MIB, users(&[200]));
        scan.used_by(3 * MIB, users(&[201, 202]));
        scan.used_by(4 * MIB, users(&[ME.thread]));
        let armed = [(4, "arm 4..5"), (3, "arm 3..4"), (1, "arm 1..2"), (0, "arm 0..1")];
        let expected = armed.into_iter().chain([(2, "pid_inactive")]);
        let expected: Vec<_> = expected.map(|(region, what)| done(region, what)).collect();
        assert_eq!(pass(&mut scan, 2, &rules), expected);
        let sequence = scan.sequence;
        let next = pass(&mut scan, 3, &rules);
        assert_eq!((next.last(), scan.sequence), (Some(&done(2, "arm 2..3")), sequence + 1));
    }

    /// Before Linux 6.4: no delay, no users, and no region is skipped because it was scanned.
    #[test]
    fn regions_that_are_not_tracked_are_scanned_by_anyone_at_once() {
        for order in [Order::Address, Order::Activity] {
            for others in [Rules::BASE, Rules::LINUX_6_12] {
                let rules = Rules { track_regions: false, order, ..others };
                let mut scan = grown(&[(0, 1), (4, 5)]);
                assert!(scan.add(8 * MIB..9 * MIB, Traits::ANONYMOUS));
                let all = [done(0, "arm 0..1"), done(4, "arm 4..5"), done(8, "arm 8..9")];
                assert_eq!(pass(&mut scan, 0, &rules), all, "{rules:?}");
                assert_eq!(pass(&mut scan, 0, &rules), all, "{rules:?}");
            }
        }
    }

    #[test]
    fn a_new_region_waits_but_not_in_the_first_sequence() {
        let mut scan = Scan::new();
        scan.add(0..4 * MIB, Traits::ANONYMOUS);
        assert_eq!(pass(&mut scan, 0, &Rules::LINUX_6_12), [done(0, "arm 0..4")]);
        scan.sequence = 1;
        scan.remap([(8 * MIB..9 * MIB, Traits::ANONYMOUS)]);
        assert_eq!(pass(&mut scan, 5, &Rules::LINUX_6_12), [done(8, "scan_delay")]);
        assert_eq!(pass(&mut scan, 6, &Rules::LINUX_6_12), [done(8, "arm 8..9")]);
    }

    #[test]
    fn the_delay_of_a_region_may_begin_before_a_pass_comes_to_it() {
        let mut scan = grown(&[(0, 4)]);
        assert!(scan.add(8 * MIB..9 * MIB, Traits::ANONYMOUS));
        let sequence = scan.sequence();
        scan.visit(8 * MIB, Duration::from_secs(5), &Settings::default());
        scan.visit(8 * MIB, Duration::from_secs(9), &Settings::default());
        assert_eq!(pass(&mut scan, 6, &Rules::LINUX_6_12)[1], done(8, "arm 8..9"));
        assert_eq!((scan.sequences_of(8 * MIB), scan.sequence()), (1, sequence + 1));
        assert_eq!((scan.sequences_of(0), scan.sequences_of(MIB)), (scan.sequence() - 5, 0));
    }

    #[test]
    fn a_region_that_grows_keeps_its_users_and_one_that_starts_elsewhere_does_not() {
        let mut scan = grown(&[(0, 1), (4, 5)]);
        scan.used_by(0, 1);
        scan.used_by(4 * MIB, 1);
        scan.remap([(0..2 * MIB, Traits::ANONYMOUS), (3 * MIB..5 * MIB, Traits::ANONYMOUS)]);
        assert_eq!((scan.users(0), scan.users(3 * MIB)), (1, 0));
    }

    #[test]
    fn a_region_is_removed_by_its_start_alone() {
        let mut scan = grown(&[(0, 1), (2, 5), (6, 8)]);
        assert_eq!(scan.bytes(), 6 * MIB);
        assert!(!scan.remove(3 * MIB));
        assert!(scan.remove(2 * MIB));
        assert_eq!(scan.bytes(), 3 * MIB);
        assert!(scan.add(2 * MIB..6 * MIB, Traits::ANONYMOUS), "there is room again");
    }

    #[test]
    fn changed_traits_count_in_the_next_pass() {
        let mut scan = grown(&[(0, 1), (1, 2)]);
        scan.set_traits(MIB, Traits { movable: false, ..Traits::ANONYMOUS });
        let seen = pass(&mut scan, 2, &Rules::BASE);
        assert_eq!(seen, [done(0, "pid_inactive"), done(1, "unsuitable")]);
    }

    #[test]
    fn a_sequence_is_over_when_all_regions_were_walked() {
        let mut scan = Scan::new();
        assert!(scan.add(0..300 * MIB, Traits::ANONYMOUS));
        pass(&mut scan, 0, &Rules::BASE);
        assert_eq!(scan.sequence(), 0, "256 MiB were armed");
        pass(&mut scan, 0, &Rules::BASE);
        assert_eq!(scan.sequence(), 1);
        pass(&mut scan, 2, &Rules::BASE);
        pass(&mut scan, 2, &Rules::BASE);
        assert_eq!(scan.sequence(), 2);
    }

    /// With the fix, windows end for any scanning thread. Before it they ended only for users, so
    /// threads that returned after a long time still counted.
    #[test]
    fn windows_end_for_those_who_do_not_use_the_region_by_a_fix() {
        let visits = |rules: &Rules| {
            let mut scan = grown(&[(0, 1)]);
            scan.used_by(0, 1 << Width::Bits64.bit(ME.thread));
            let other = ME.thread + 1;
            assert_ne!(Width::Bits64.bit(other), Width::Bits64.bit(ME.thread));
            for second in [30, 31] {
                let seen = pass_by(&mut scan, other, second, rules);
                assert_eq!(seen, [done(0, "pid_inactive")]);
            }
            [30, 30, 30].map(|second| pass(&mut scan, second, rules) == [done(0, "arm 0..1")])
        };
        let fixed =
            Rules { scan_one_inactive: false, once_per_sequence: false, ..Rules::SELECTIVE };
        assert_eq!(visits(&Rules::BASE), [true, true, false], "each of its visits ends one");
        assert_eq!(visits(&fixed), [false; 3]);
    }

    #[test]
    fn the_order_by_activity_first_completes_what_was_begun() {
        for (end, rest) in [(300, "arm 256..300"), (256, "arm 256..256")] {
            let mut scan = grown(&[(0, end), (400, 401)]);
            let rules = Rules { order: Order::Activity, ..Rules::SELECTIVE };
            let begun = pass(&mut scan, 2, &rules);
            assert_eq!(begun, [done(0, "arm 0..256"), done(400, "pid_inactive")]);
            scan.used_by(400 * MIB, 1 << rules.width.bit(ME.thread));
            assert_eq!(pass(&mut scan, 2, &rules), [done(0, rest), done(400, "arm 400..401")]);
        }
    }

    /// The region at 0 is blind in sequence 5 and starves in sequence 9. Two threads use the other.
    #[test]
    fn the_order_by_activity_takes_the_blind_and_the_starving_for_used() {
        let rules = Rules { order: Order::Activity, ..Rules::LINUX_6_12 };
        for sequence in [5, 9] {
            let mut scan = grown(&[(0, 1)]);
            scan.sequence = sequence;
            assert!(scan.add(4 * MIB..5 * MIB, Traits::ANONYMOUS));
            pass(&mut scan, 0, &rules);
            scan.used_by(4 * MIB, 0b11);
            let armed = [done(0, "arm 0..1"), done(4, "arm 4..5")];
            assert_eq!(pass(&mut scan, 2, &rules), armed, "{sequence}");
        }
    }

    /// Returns the parts that a pass arms, to the byte, if it may arm `size` bytes; none if
    /// everything is armed already.
    fn parts(scan: &mut Scan, size: u64, armed: u64) -> Vec<(u64, u64)> {
        struct Parts(Vec<(u64, u64)>, u64);
        impl Effects for Parts {
            fn arm(&mut self, _: u64, part: Range<u64>) -> u64 {
                assert!(self.0.len() < 1000, "the pass does not end");
                self.0.push((part.start, part.end));
                self.1
            }
            fn note(&mut self, _: u64, _: SkipReason) {}
        }
        let settings = Settings { scan_size: size, ..Settings::default() };
        let mut parts = Parts(Vec::new(), armed);
        scan.pass(ME, Duration::ZERO, &settings, &Rules::BASE, &mut parts);
        parts.0
    }

    #[test]
    fn a_pass_ends_at_the_byte_where_nothing_may_be_armed_or_looked_at_any_more() {
        let regions = |parts: &[(u64, u64)]| {
            let mut scan = Scan::new();
            assert!(parts.iter().all(|&(start, end)| scan.add(start..end, Traits::ANONYMOUS)));
            scan
        };
        // One byte is left of the two that may be armed, none of the one.
        let of_one = [(0, 1), (1, 4), (4, 9)];
        assert_eq!(parts(&mut regions(&of_one), 2, 1), of_one[..2]);
        assert_eq!(parts(&mut regions(&of_one), 1, 1), of_one[..1]);
        // One byte is left of the sixteen that may be inspected, none of the eight.
        let of_eight = [(0, 8), (8, 15), (15, 16), (16, 17)];
        assert_eq!(parts(&mut regions(&of_eight), 2, 0), of_eight[..3]);
        assert_eq!(parts(&mut regions(&of_eight), 1, 0), of_eight[..1]);
        // Up to the next multiple of a huge page.
        let mut large = regions(&[(MIB, 9 * MIB + 5)]);
        assert_eq!(parts(&mut large, 4096, 1), [(MIB, 2 * MIB)]);
        assert_eq!(parts(&mut large, 4 * MIB, 1), [(2 * MIB, 6 * MIB)]);
        assert_eq!(parts(&mut large, 4 * MIB, 1), [(6 * MIB, 9 * MIB + 5)]);
    }

    #[test]
    fn a_scan_without_regions_has_no_sequences() {
        for order in [Order::Address, Order::Activity] {
            let mut scan = Scan::new();
            assert_eq!(pass(&mut scan, 9, &Rules { order, ..Rules::BASE }), []);
            assert_eq!((scan.sequence(), scan.bytes()), (0, 0));
        }
    }

    #[test]
    fn sequences_may_be_counted_from_0_again() {
        let mut scan = grown(&[(0, 1)]);
        assert_eq!((scan.sequence(), scan.sequences_of(0)), (6, 1));
        scan.restart_sequences();
        assert_eq!(scan.sequence(), 0);
    }

    #[test]
    fn a_region_that_is_not_there_is_left_as_it_is() {
        let mut scan = grown(&[(0, 1)]);
        scan.visit(MIB, Duration::ZERO, &Settings::default());
        scan.set_traits(MIB, Traits::ANONYMOUS);
        scan.used_by(MIB, 1);
        assert_eq!((scan.users(MIB), scan.sequences_of(MIB), scan.bytes()), (0, 0, MIB));
    }

    #[test]
    fn where_the_next_region_is_gone_a_sequence_begins() {
        let mut scan = grown(&[(0, 1), (4, 300)]);
        scan.used_by(4 * MIB, 1 << Width::Bits64.bit(ME.thread));
        pass(&mut scan, 2, &Rules::BASE);
        assert_eq!(scan.offset, 260 * MIB);
        let sequence = scan.sequence();
        assert!(scan.remove(4 * MIB));
        assert_eq!(pass(&mut scan, 2, &Rules::BASE), [done(0, "pid_inactive")]);
        assert_eq!(
            scan.sequence(),
            sequence + 2,
            "it begins, and ends behind the one that is left"
        );
    }

    #[test]
    fn what_grew_behind_its_scan_is_left_out_once_in_the_sequence() {
        let mut scan = grown(&[(0, 1), (4, 5)]);
        let forced = pass(&mut scan, 2, &Rules::SELECTIVE);
        assert_eq!((&forced[2], scan.offset), (&done(0, "arm 0..1"), MIB));
        scan.remap([(0..2 * MIB, Traits::ANONYMOUS), (4 * MIB..5 * MIB, Traits::ANONYMOUS)]);
        let rest = [done(0, "seq_completed"), done(4, "pid_inactive"), done(4, "arm 4..5")];
        assert_eq!(pass(&mut scan, 2, &Rules::SELECTIVE), rest);
    }

    /// The regions were first visited in the sequences 5 and 8.
    #[test]
    fn blindness_and_starvation_are_each_regions_own() {
        let fixed = Rules { scan_one_inactive: false, ..Rules::LINUX_6_12 };
        let mut scan = grown(&[(0, 1)]);
        scan.sequence += 2;
        assert!(scan.add(4 * MIB..5 * MIB, Traits::ANONYMOUS));
        scan.visit(4 * MIB, Duration::ZERO, &Settings::default());
        let inactive = |region| done(region, "pid_inactive");
        let (first, second) = (done(0, "arm 0..1"), done(4, "arm 4..5"));
        for (sequence, expected) in [
            (8, [inactive(0), second.clone()]),
            (9, [first.clone(), second.clone()]),
            (10, [first.clone(), inactive(4)]),
            (11, [first.clone(), inactive(4)]),
            (12, [first, second]),
        ] {
            let mut at = scan.clone();
            at.sequence = sequence;
            assert_eq!(pass(&mut at, 2, &fixed), expected, "{sequence}");
        }
        // Without the fix the age of the process counts.
        for (sequence, what) in [(1, "arm 0..1"), (2, "pid_inactive")] {
            let mut at = grown(&[(0, 1)]);
            at.sequence = sequence;
            assert_eq!(pass(&mut at, 2, &Rules::BASE), [done(0, what)], "{sequence}");
        }
    }

    #[test]
    fn the_order_by_activity_leaves_all_for_later_that_is_behind_what_was_begun() {
        let rules = Rules { order: Order::Activity, ..Rules::SELECTIVE };
        let mut scan = grown(&[(0, 1), (2, 3), (4, 300)]);
        let sequence = scan.sequence();
        scan.used_by(4 * MIB, 1 << rules.width.bit(ME.thread));
        let idle = [done(0, "pid_inactive"), done(2, "pid_inactive")];
        let first = pass(&mut scan, 2, &rules);
        assert_eq!(first, [[done(4, "arm 4..260")].as_slice(), &idle].concat());
        assert_eq!(scan.sequence(), sequence);
        let next = pass(&mut scan, 2, &rules);
        let rest = [done(4, "arm 260..300"), done(0, "arm 0..1"), idle[1].clone()];
        assert_eq!((next.as_slice(), scan.sequence()), (rest.as_slice(), sequence));
        // A single region whose scan has begun.
        let mut alone = grown(&[(0, 300)]);
        pass(&mut alone, 2, &rules);
        assert_eq!(alone.sequence(), sequence);
        pass(&mut alone, 2, &rules);
        assert_eq!(alone.sequence(), sequence + 1);
    }

    #[test]
    fn regions_do_not_overlap() {
        let mut scan = grown(&[(2, 4)]);
        for (start, end) in [(1, 3), (3, 5), (2, 4), (3, 3), (0, 9), (6, 6)] {
            assert!(!scan.add(start * MIB..end * MIB, Traits::ANONYMOUS), "{start}..{end}");
        }
        assert!(scan.add(0..2 * MIB, Traits::ANONYMOUS) && scan.remove(0) && !scan.remove(0));
        let mapped = [(0, 2), (1, 3), (3, 4)];
        scan.remap(mapped.map(|(start, end)| (start * MIB..end * MIB, Traits::ANONYMOUS)));
        assert_eq!(scan.bytes(), 3 * MIB, "the second is left out");
    }
}
