//! The NUMA scan (`percid_rules::scan`) against the scan of a real kernel, decision by decision.
//!
//! The program `scan-walk` records the scan by Linux 6.12. The recording is passed to percid's
//! scan: the regions, the scanning threads and times, the pages that each chunk changed, the hint
//! faults. Everything else is the scan's own decision: the order of the regions, the skipped ones
//! and their reasons, the end of a pass.
//!
//! `PERCID_RECORDING=FILE` stores the recording of a machine.

mod recording;
mod replay;

use std::env;
use std::time::Duration;

use percid_rules::scan::{Rules, SkipReason};
use percid_vm::platform::Arch;
use percid_vm::protocol::Job;

use crate::machines::{outputs, skipped};
use recording::{Done, Entry, Recording};
use replay::compare;

/// A recording of a machine with 8 CPUs and 2 nodes (Linux 6.12.117), so that the comparison needs
/// no machine.
const KEPT: &str = include_str!("../../recordings/scan-walk-6.12.txt");

fn kept() -> Recording {
    Recording::read(KEPT).expect("a recording")
}

#[test]
fn the_recorded_walk_is_ours() {
    let agreement = compare(&kept(), &Rules::LINUX_6_12).expect("no difference");
    println!("{agreement:?}");
    assert!(agreement.passes >= 60 && agreement.chunks >= 80);
    for reason in SkipReason::ALL {
        assert!(agreement.reasons.contains_key(&reason), "{reason:?} is never tested");
    }
}

/// Negative controls: each rule changes what the walk does to the recorded process.
#[test]
fn a_walk_with_any_rule_changed_is_noticed() {
    let linux = Rules::LINUX_6_12;
    let changed = [
        Rules { window_before_test: false, ..linux },
        Rules { once_per_sequence: false, ..linux },
        Rules { complete_partial: false, ..linux },
        Rules { scan_one_inactive: false, ..linux },
        Rules { per_region_cycles: false, ..linux },
        Rules { scan_starved: false, ..linux },
        Rules::SELECTIVE,
        Rules::BASE,
    ];
    for rules in changed {
        let difference = compare(&kept(), &rules).expect_err("a difference");
        println!("{rules:?}: differs after {} passes", difference.passes);
        assert_ne!(difference.real, difference.ours);
    }
}

/// Negative controls: a recording in which one decision or one fault is missing.
#[test]
fn a_recording_with_anything_left_out_is_noticed() {
    let mut without_hints = kept();
    without_hints.entries.retain(|entry| !matches!(entry, Entry::Hint { .. }));
    assert!(compare(&without_hints, &Rules::LINUX_6_12).is_err());
    let mut without_policies = kept();
    without_policies.entries.retain(|entry| !matches!(entry, Entry::Policy { .. }));
    assert!(compare(&without_policies, &Rules::LINUX_6_12).is_err());
    for number in 0..kept().entries.len() {
        let mut shorter = kept();
        let Entry::Pass { actions, .. } = &mut shorter.entries[number] else { continue };
        let Some(Done::Traced { .. }) = actions.pop() else { continue };
        assert!(compare(&shorter, &Rules::LINUX_6_12).is_err(), "entry {number}");
    }
}

/// Negative controls: every trait of a region decides something.
#[test]
fn a_recording_with_a_trait_forgotten_is_noticed() {
    let forgotten = |word: &str| {
        let line = |line: &str| match line.strip_prefix("region ") {
            Some(_) => line.replace(word, "") + "\n",
            None => format!("{line}\n"),
        };
        KEPT.lines().map(line).collect::<String>()
    };
    for word in [",ht", ",pf,io", " file", " fixed", " balancing", "rd,"] {
        let text = forgotten(word);
        assert_ne!(text.len(), KEPT.len(), "{word} is never tested");
        let recording = Recording::read(&text).expect("a recording");
        assert!(compare(&recording, &Rules::LINUX_6_12).is_err(), "without {word}");
    }
    let same = Recording::read(&forgotten("nothing")).expect("a recording");
    assert!(compare(&same, &Rules::LINUX_6_12).is_ok());
}

#[test]
fn what_is_no_recording_is_refused() {
    for text in ["", "settings", "settings delay_ms 1 size_mb 1 tick_ms 4 threads x", "nonsense"] {
        let error = Recording::read(text).expect_err(text);
        assert!(error.starts_with("expected"), "{error}");
    }
    let broken = KEPT.replacen("arm", "armed", 1);
    assert!(Recording::read(&broken).expect_err("broken").contains("armed"));
}

/// Compares with a new scan of a real kernel. Its clock ticks during a pass too, and a pass can
/// come between a change of the memory and its mark, which the recording does not show. Sometimes,
/// more often on a busy host, one of the two scans has information that the other lacks. So the
/// last of some recordings may decide.
#[test]
fn a_walk_of_a_real_kernel_is_ours() {
    if skipped(Arch::X86_64) {
        return;
    }
    for _ in 1..RECORDINGS {
        match walk() {
            Ok(()) => return,
            Err(difference) => println!("{difference}\nrecording once more"),
        }
    }
    walk().unwrap_or_else(|difference| panic!("{difference}"));
}

const RECORDINGS: u32 = 4;

fn walk() -> Result<(), String> {
    let output = record();
    if let Some(path) = env::var_os("PERCID_RECORDING") {
        std::fs::write(path, &output).expect("the recording is written");
    }
    let recording = Recording::read(&output)?;
    let agreement = compare(&recording, &Rules::LINUX_6_12);
    let agreement = agreement.map_err(|difference| difference.to_string())?;
    println!("{agreement:?}");
    // A slow host leaves time for fewer; without any the test would prove nothing.
    assert!(agreement.passes >= 10, "{agreement:?}");
    Ok(())
}

fn record() -> String {
    let job = Job::new("scan-walk --seconds 16", Duration::from_secs(120)).expect("a good command");
    outputs("8/2", &[job]).concat()
}
