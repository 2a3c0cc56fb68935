//! NUMA scans that break their contract in one way each.

use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Effects, HUGE_PAGE, Rules, Scan, Scanner, Settings, SkipReason, Traits};
use percid_sim::numa::Setup;
use percid_sim::numa::comparison::RULE_SETS;
use percid_sim::numa::contract::{ScanBreach, ScanViolation};
use percid_sim::numa::outcome::Outcome;
use percid_sim::numa::run::{process, process_by};
use percid_sim::numa::scan_policy::ScanPolicy;

/// The way in which a [`Faulty`] scan differs from that of Linux 6.12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    ArmsForever,
    NotesForever,
    InspectsTooMuch,
    LeavesTheRegionBelow,
    LeavesTheRegionAbove,
    ArmsBackwards,
    UnknownRegion,
    StandsStill,
    CountsDown,
}

/// A scan that behaves for some passes, and then has its fault.
struct Faulty {
    fault: Fault,
    scan: Scan,
    regions: Vec<Range<u64>>,
    passes: u64,
}

/// Number of passes before the fault.
const SOUND_PASSES: u64 = 20;

impl Faulty {
    fn new(fault: Fault) -> Faulty {
        Faulty { fault, scan: Scan::new(), regions: Vec::new(), passes: 0 }
    }

    fn fail(&self, settings: &Settings, effects: &mut dyn Effects) {
        let largest = self.regions.iter().max_by_key(|region| region.end - region.start);
        let Range { start, end } = largest.expect("a region").clone();
        match self.fault {
            Fault::ArmsForever => loop {
                effects.arm(start, start..start);
            },
            Fault::NotesForever => loop {
                effects.note(start, SkipReason::PidInactive);
            },
            Fault::InspectsTooMuch => {
                for _ in 0..10 {
                    effects.arm(start, start..start + settings.scan_size);
                }
            }
            Fault::LeavesTheRegionBelow => _ = effects.arm(start, start - 1..start),
            Fault::LeavesTheRegionAbove => _ = effects.arm(start, end..end + HUGE_PAGE),
            Fault::ArmsBackwards => _ = effects.arm(start, backwards(start, end)),
            Fault::UnknownRegion => _ = effects.arm(start + 1, start + 1..end),
            Fault::Nothing | Fault::StandsStill | Fault::CountsDown => {}
        }
    }
}

fn backwards(start: u64, end: u64) -> Range<u64> {
    Range { start: end, end: start }
}

impl ScanPolicy for Faulty {
    fn map(&mut self, regions: Vec<(Range<u64>, Traits)>) {
        self.regions = regions.iter().map(|(range, _)| range.clone()).collect();
        self.scan.remap(regions);
    }

    fn pass(
        &mut self,
        scanner: Scanner,
        now: Duration,
        settings: &Settings,
        mut effects: &mut dyn Effects,
    ) {
        self.passes += 1;
        if self.passes > SOUND_PASSES {
            self.fail(settings, effects);
        }
        if self.passes <= SOUND_PASSES || self.fault != Fault::StandsStill {
            self.scan.pass(scanner, now, settings, &Rules::LINUX_6_12, &mut effects);
        }
    }

    fn used(&mut self, region: u64, thread: u32) {
        self.scan.used_by(region, 1 << Rules::LINUX_6_12.width.bit(thread));
    }

    fn sequence(&self) -> i64 {
        let is_wrong = self.fault == Fault::CountsDown && self.passes > SOUND_PASSES;
        if is_wrong { -1 } else { self.scan.sequence() }
    }
}

fn run(fault: Fault) -> Result<Outcome, ScanViolation> {
    process_by(&Setup::published(), Faulty::new(fault), false, 0, 1)
}

#[test]
fn every_broken_scan_is_noticed_in_the_pass_that_broke_it() {
    type Expected = fn(&ScanBreach) -> bool;
    let faults: [(Fault, Expected); 8] = [
        (Fault::ArmsForever, |breach| matches!(breach, ScanBreach::Calls { .. })),
        (Fault::NotesForever, |breach| matches!(breach, ScanBreach::Calls { .. })),
        (Fault::InspectsTooMuch, |breach| matches!(breach, ScanBreach::Bytes { .. })),
        (Fault::LeavesTheRegionBelow, |breach| matches!(breach, ScanBreach::Inside { .. })),
        (Fault::LeavesTheRegionAbove, |breach| matches!(breach, ScanBreach::Inside { .. })),
        (Fault::ArmsBackwards, |breach| matches!(breach, ScanBreach::Inside { .. })),
        (Fault::UnknownRegion, |breach| matches!(breach, ScanBreach::Region { .. })),
        (Fault::CountsDown, |breach| matches!(breach, ScanBreach::Sequence { .. })),
    ];
    for (fault, expected) in faults {
        let Err(violation) = run(fault) else { panic!("{fault:?} is not noticed") };
        assert!(expected(&violation.breach), "{fault:?}: {violation}");
        assert_eq!(violation.pass, SOUND_PASSES + 1, "{fault:?}: {violation}");
        assert!(violation.to_string().contains("expected"), "{violation}");
    }
}

#[test]
fn a_cycle_that_does_not_end_is_noticed() {
    let Err(violation) = run(Fault::StandsStill) else { panic!("it is not noticed") };
    let ScanBreach::Cycle { most } = violation.breach else { panic!("{violation}") };
    // Some of the passes that behaved count, if the last of them ended no cycle.
    assert!((most - SOUND_PASSES..=most + SOUND_PASSES + 1).contains(&violation.pass));
}

#[test]
fn a_scan_by_the_same_rules_has_the_same_outcome() {
    let own = run(Fault::Nothing).expect("the contract is kept");
    let linux = process(&Setup::published(), &Rules::LINUX_6_12, false, 0, 1);
    assert_eq!((own.elapsed, &own.counts), (linux.elapsed, &linux.counts));
}

/// Small budgets make many pieces and many passes.
#[test]
fn all_rules_keep_the_contract_with_any_budget() {
    for scan_size in [1 << 20, 16 << 20, 256 << 20] {
        for rules in &RULE_SETS {
            let mut setup = Setup::published();
            setup.scan.scan_size = scan_size;
            setup.set("rounds", 20.0).expect("a number");
            let outcome = process(&setup, &rules.rules, rules.tiers, 0, 1);
            assert!(outcome.counts.passes > 0, "{}", rules.name);
        }
    }
}
