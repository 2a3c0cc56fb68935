//! All suites, one after the other: each wants the machine for itself.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock};

use percid_aborts::build;
use percid_aborts::subject::Cpus;
use percid_aborts::suite::{self, Verdict};

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

fn expect(verdict: Verdict) {
    match verdict {
        Ok(line) => println!("{line}"),
        Err(line) => panic!("{line}"),
    }
}

#[test]
fn every_instruction_may_be_interrupted() {
    let _alone = alone();
    expect(suite::instructions(&subject(), cpus()));
}

#[test]
fn every_planted_fault_is_found() {
    let _alone = alone();
    expect(suite::controls(&subject(), cpus()));
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
