//! The IDs of the running kernel, step by step, against the simulator's policy of its generation.
//! Without a kernel that has IDs and lets us trace it nothing is compared, unless
//! `PERCID_TRACE=require` is set.

use std::env;
use std::process::Command;

use percid_sim::conformance::{Recording, generation};
use percid_sim::policies::find;

/// Minimum and maximum numbers of recorded schedules: a schedule with a decision close to the
/// border is less informative.
const SEEDS: std::ops::RangeInclusive<u32> = 1..=40;

/// Maximum number of recordings of a schedule. On a busy machine an event may be recorded late, in
/// about one recording of four. A wrong policy differs in each. If a right one differs in three of
/// four, it differs in all with a probability of (3/4)^80 < 1e-9.
const RECORDINGS: u32 = 80;

/// Returns the output of the program for one schedule.
fn record(seed: &str, script: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_percid-programs"));
    command.arg("id-steps").args(script).env("PERCID_SEED", seed);
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn ids_of_this_kernel_are_those_of_its_policy() {
    let release = percid::machine::read().kernel_release;
    let policy = match generation(&release) {
        Some(policy) => policy,
        None => return skip(&format!("{release}: this kernel has no concurrency IDs")),
    };
    // If IDs have owners, the number of threads matters, and not the length of their pauses.
    let script: &[&str] = if policy.name == "linux-6.19" { &["--owners"] } else { &[] };
    let (mut whole, mut told_apart) = (0, 0);
    for seed in 1..=*SEEDS.end() {
        let mut tries = RECORDINGS;
        let (recording, comparison) = loop {
            let text = record(&seed.to_string(), script);
            if let Some((_, why)) = text.split_once("skipped: ") {
                return skip(why.trim());
            }
            let recording =
                Recording::read(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            let comparison = recording.compare(policy);
            println!("{release}, seed {seed}: {}: {comparison}", policy.name);
            tries -= 1;
            if comparison.agrees() || tries == 0 {
                break (recording, comparison);
            }
        };
        assert!(comparison.agrees(), "seed {seed}: {comparison}\n{recording}");
        whole += usize::from(comparison.border.is_none());
        // The control: the oldest generation gives other IDs.
        let oldest = recording.compare(find("linux-6.3").expect("a policy"));
        told_apart += usize::from(!oldest.agrees());
        let is_enough = whole > 0 && (told_apart > 0 || policy.name == "linux-6.3");
        if seed >= *SEEDS.start() && is_enough {
            return;
        }
    }
    panic!(
        "{whole} recordings without a decision on the border, {told_apart} tell generations apart"
    );
}

fn skip(why: &str) {
    assert!(env::var("PERCID_TRACE").as_deref() != Ok("require"), "{why}");
    percid_skips::not_checked("the IDs of this kernel", why);
}
