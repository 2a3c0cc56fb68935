//! All suites, one after the other: each needs the whole machine.
//!
//! Of the pairs of instructions a sample is tried unless `PERCID_STRESS=long` is set. Its seed is
//! printed; `PERCID_SEED` repeats it.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock};
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

/// The subject, built once.
fn subject() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build::SUBJECT.make().unwrap_or_else(|error| panic!("{error}"))).clone()
}

fn cpus() -> Cpus {
    Cpus::choose().unwrap_or_else(|error| panic!("{error}"))
}

fn pairs() -> Pairs {
    if std::env::var_os("PERCID_STRESS").is_some_and(|wish| wish == "long") {
        return Pairs::All;
    }
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = given.unwrap_or_else(|| now.map_or(1, |now| now.as_nanos() as u64));
    println!("PERCID_SEED={seed}");
    Pairs::Sample { seed }
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
    expect(suite::instructions(&subject(), cpus(), &Operation::PERCID, pairs()));
}

#[test]
fn every_planted_fault_is_found() {
    let _alone = alone();
    expect(suite::controls(&subject(), cpus(), pairs()));
}

#[test]
fn descriptors_are_well_formed_however_the_program_is_built() {
    let _alone = alone();
    expect(suite::descriptors());
}

#[test]
fn fast_paths_are_as_written_down() {
    let _alone = alone();
    expect(suite::fast_paths(&subject()));
}
