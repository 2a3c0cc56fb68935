//! The walk of a real kernel's NUMA scan, replayed: `numa-scan.parquet` was recorded on Linux 6.12.

#![cfg(all(feature = "files", target_endian = "little"))]

use crate::fixture;

use std::collections::BTreeSet;

use fixture::trace;
use percid_rules::scan::{Rules, SkipReason};
use percid_trace::numa::What;
use percid_trace::scan_walk::{
    RULE_SETS, Replayed, Source, Walk, WalkStep, kernel, of_release, replay, walks,
};
use percid_trace::{Trace, read};

const RECORDED: &str = "numa-scan.parquet";

/// The only process that was scanned for long.
fn walk(trace: &Trace) -> Walk {
    let walks = walks(trace);
    walks.into_iter().max_by_key(|walk| walk.steps.len()).expect("a walk")
}

fn replayed(walk: &Walk, name: &str) -> Replayed {
    let set = RULE_SETS.iter().find(|set| set.name == name).expect("a rule set");
    replay(walk, &set.rules)
}

/// Returns the same recording as made by kernels without probes.
fn without_probes() -> Trace {
    let mut trace = trace(RECORDED);
    trace.numa.retain(|event| {
        !matches!(event.what, What::Pass { .. } | What::Arm { .. } | What::Hint { .. })
    });
    trace
}

#[test]
fn the_recorded_walk_has_the_kernels_counts() {
    let trace = trace(RECORDED);
    let walk = walk(&trace);
    assert_eq!((walk.source, walk.settings_known, walk.was_there), (Source::Probes, true, false));
    let tally = kernel(&walk);
    assert_eq!((tally.passes, tally.armed), (51, 72));
    let noted: Vec<(SkipReason, u64)> = tally.noted.into_iter().collect();
    let expected = [
        (SkipReason::Unsuitable, 87),
        (SkipReason::SharedRo, 38),
        (SkipReason::Inaccessible, 118),
        (SkipReason::ScanDelay, 4),
        (SkipReason::PidInactive, 94),
        (SkipReason::IgnorePidInactive, 2),
    ];
    assert_eq!(noted, expected);
}

#[test]
fn the_kernels_own_rules_say_the_same_in_every_line() {
    let trace = trace(RECORDED);
    let release = trace.origin.release.as_deref().expect("a release");
    let own = of_release(release).expect("rules");
    assert_eq!(own.name, "linux-6.12");
    let walk = walk(&trace);
    let replayed = replayed(&walk, own.name);
    let agreement = &replayed.agreement;
    assert_eq!(agreement.first, None);
    assert_eq!((agreement.passes, agreement.lines), (51, 415));
    assert_eq!((agreement.kernel_only, agreement.rules_only), (0, 0));
    assert_eq!(replayed.tally, kernel(&walk));
}

/// Negative controls: rules that the kernel does not have.
#[test]
fn other_rules_say_something_else() {
    let walk = walk(&trace(RECORDED));
    for name in ["base", "windows", "partial", "by-activity"] {
        let agreement = replayed(&walk, name).agreement;
        assert!(agreement.first.is_some(), "{name}");
        assert!(agreement.passes < 51 && agreement.share() < 0.9, "{name}: {agreement:?}");
    }
    for rules in [
        Rules { complete_partial: false, ..Rules::LINUX_6_12 },
        Rules { scan_one_inactive: false, ..Rules::LINUX_6_12 },
    ] {
        assert!(replay(&walk, &rules).agreement.first.is_some(), "{rules:?}");
    }
}

/// Negative controls: a recording of which something is missing.
#[test]
fn a_recording_without_its_hint_faults_or_regions_is_another_walk() {
    let mut without_hints = trace(RECORDED);
    without_hints.numa.retain(|event| !matches!(event.what, What::Hint { .. }));
    let agreement = replayed(&walk(&without_hints), "linux-6.12").agreement;
    assert!(agreement.share() < 0.9, "{agreement:?}");
    let mut one_less = trace(RECORDED);
    let skips = |what: &What| matches!(what, What::Skip { .. });
    let last = one_less.numa.iter().rposition(|event| skips(&event.what)).expect("a line");
    one_less.numa.remove(last);
    let agreement = replayed(&walk(&one_less), "linux-6.12").agreement;
    assert_eq!((agreement.passes, agreement.rules_only), (50, 1));
}

/// Recorded with few looks, and scanned before it had its second thread: the kernel counted its
/// sequences from 0 again when that was created.
#[test]
fn a_first_thread_that_creates_another_begins_the_sequences_again() {
    let walk = walk(&trace("numa-scan-restart.parquet"));
    let agreement = replayed(&walk, "linux-6.12").agreement;
    assert_eq!(agreement.first, None);
    assert_eq!((agreement.passes, agreement.lines), (19, 101));
    let mut forgotten = walk.clone();
    forgotten.steps.retain(|step| !matches!(step, WalkStep::Restart));
    let without = replayed(&forgotten, "linux-6.12").agreement;
    assert_eq!((without.passes, without.lines), (11, 65));
}

/// The armed memory is inferred from the offset at which the next pass began.
#[test]
fn tracepoints_alone_show_what_was_scanned() {
    let walk = walk(&without_probes());
    assert_eq!(walk.source, Source::Tracepoints);
    let agreement = replayed(&walk, "linux-6.12").agreement;
    assert_eq!((agreement.lines, agreement.kernel_only, agreement.rules_only), (343, 0, 0));
    let other = replayed(&walk, "base").agreement;
    assert!(other.rules_only > 0 && other.kernel_only > 0, "{other:?}");
    // Every part that is taken to be scanned was armed, as the probes say.
    let whole = trace(RECORDED);
    let armed: Vec<(u64, u64)> = whole
        .numa
        .iter()
        .filter_map(|event| match event.what {
            What::Arm { start, end, .. } => Some((start, end)),
            _ => None,
        })
        .collect();
    let mut parts = 0;
    for step in &walk.steps {
        let WalkStep::Pass(pass) = step else { continue };
        for part in pass.scanned.iter().chain(&pass.forced) {
            let was = armed.iter().any(|&(start, end)| start < part.end && part.start < end);
            assert!(was, "{:x?} at {}", part, pass.time);
            parts += 1;
        }
    }
    assert!(parts > 30, "{parts}");
}

/// The kernel's own text of the same run, to the microsecond.
#[test]
fn text_of_the_same_run_has_the_same_events() {
    let text = read::read_bytes(&fixture::bytes("numa-scan.txt")).expect("text");
    let whole = trace(RECORDED);
    let of_walk: Vec<(u64, u32, What)> = whole
        .numa
        .iter()
        .filter(|event| matches!(event.what, What::Skip { .. } | What::Migrated { .. }))
        .map(|event| (event.time, event.thread, event.what))
        .collect();
    let is_there = |&(time, thread, what): &(u64, u32, What)| {
        text.numa.iter().any(|event| {
            (event.thread, event.what) == (thread, what) && event.time.abs_diff(time) <= 1_000_000
        })
    };
    let missing = of_walk.iter().filter(|event| !is_there(event)).count();
    assert_eq!(missing, 0, "of {}", of_walk.len());
    let walk = walk(&text);
    assert_eq!(walk.source, Source::Tracepoints);
    assert!(!walk.settings_known && walk.inferred.regions > 0);
}

/// The same recording as of a kernel before 6.4, which tells nothing of what it leaves out: shared
/// memory, which that kernel does not scan, is known by never being armed.
#[test]
fn what_old_kernels_never_arm_of_files_is_taken_for_shared_memory() {
    let mut old = trace(RECORDED);
    old.origin.release = Some("6.1.0-56-cloud-amd64".to_owned());
    old.numa.retain(|event| !matches!(event.what, What::Skip { .. }));
    let shared = |trace: &Trace| -> BTreeSet<u64> {
        let region = |what: &What| match *what {
            What::Region { start, traits, .. } if traits.file && traits.writable => Some(start),
            _ => None,
        };
        trace.numa.iter().filter_map(|event| region(&event.what)).collect()
    };
    let armed = |start: u64, trace: &Trace| {
        trace
            .numa
            .iter()
            .any(|event| matches!(event.what, What::Arm { start: at, .. } if at == start))
    };
    let never: Vec<u64> = shared(&old).into_iter().filter(|&start| !armed(start, &old)).collect();
    let first = shared(&old).into_iter().find(|&start| armed(start, &old)).expect("armed");
    assert_eq!(walk(&old).inferred.traits, never.len() as u64);
    old.numa.retain(|event| !matches!(event.what, What::Arm { start, .. } if start == first));
    assert_eq!(walk(&old).inferred.traits, never.len() as u64 + 1);
    old.origin.release = Some("6.6.0".to_owned());
    assert_eq!(walk(&old).inferred.traits, 0, "there a region may have no users");
}
