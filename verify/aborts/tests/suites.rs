//! All suites, one after the other: each needs the whole machine.
//!
//! Only a sample of the pairs of instructions is tried unless `PERCID_STRESS=long` is set. Its seed
//! is printed; `PERCID_SEED` repeats it.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use percid_aborts::build;
use percid_aborts::campaign::Pairs;
use percid_aborts::subject::Cpus;
use percid_aborts::suite::{self, Verdict};
use percid_subject::Operation;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The subject, as it was built with this test: with the code that users get, but for what is not
/// inlined.
const SUBJECT: &str = env!("CARGO_BIN_EXE_percid-subject-here");

fn cpus() -> Cpus {
    Cpus::choose().unwrap_or_else(|error| panic!("{error}"))
}

fn pairs(of: u64) -> Pairs {
    if std::env::var_os("PERCID_STRESS").is_some_and(|wish| wish == "long") {
        return Pairs::All;
    }
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = given.unwrap_or_else(|| now.map_or(1, |now| now.as_nanos() as u64));
    println!("PERCID_SEED={seed}");
    Pairs::Sample { seed, of }
}

fn expect(verdict: Verdict) {
    match verdict {
        Ok(line) => println!("{line}"),
        Err(line) => panic!("{line}"),
    }
}

#[test]
fn every_instruction_may_be_interrupted() {
    let _alone = alone();
    expect(suite::instructions(SUBJECT.as_ref(), cpus(), &Operation::PERCID, pairs(1000)));
}

#[test]
#[ignore = "slow: as long as the suite itself"]
fn every_planted_fault_is_found() {
    let _alone = alone();
    expect(suite::controls(SUBJECT.as_ref(), cpus(), pairs(100)));
}

#[test]
fn descriptors_of_this_build_are_well_formed() {
    expect(suite::descriptors_of(env!("CARGO_BIN_EXE_percid-probe-here").as_ref()));
}

#[test]
fn fast_paths_of_this_build_are_as_written_down() {
    expect(suite::fast_paths_here(SUBJECT.as_ref()));
}

#[test]
#[ignore = "long: Cargo builds the subject as users get it"]
fn every_instruction_of_an_optimised_build_may_be_interrupted() {
    let _alone = alone();
    expect(suite::instructions(&optimised(), cpus(), &Operation::PERCID, pairs(10)));
}

#[test]
#[ignore = "long: Cargo builds probes in seven ways"]
fn descriptors_are_well_formed_however_the_program_is_built() {
    expect(suite::descriptors());
}

#[test]
#[ignore = "long: Cargo builds the subject as users get it, and without sections"]
fn fast_paths_are_as_written_down() {
    expect(suite::fast_paths(&optimised()));
}

fn optimised() -> PathBuf {
    build::SUBJECT.make().unwrap_or_else(|error| panic!("{error}"))
}
