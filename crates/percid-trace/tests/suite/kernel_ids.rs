//! The IDs that Linux 6.18 handed out to real programs, which `fixtures/record.sh` recorded.

// On big-endian machines Parquet is not supported.
#![cfg(target_endian = "little")]

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use percid_sim::policies::find;
use percid_trace::event::{Tid, What};
use percid_trace::{Trace, kernel_ids, parquet};

/// The IDs in each trace.
const POSTGRES: usize = 2520;
const BUILD: usize = 833;
const NGINX: usize = 11110;

fn trace(name: &str) -> Trace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let trace = parquet::read(File::open(path).expect("a fixture")).expect("a trace");
    assert_eq!(trace.origin.lost, 0);
    trace
}

/// The processes that started their programs within the trace and use restartable sequences.
fn processes(trace: &Trace) -> Vec<Tid> {
    let started = trace.events.iter().filter_map(|event| match event.what {
        What::Exec { thread, .. } => Some(thread),
        _ => None,
    });
    let started: BTreeSet<Tid> = started.collect();
    started.into_iter().filter(|&process| kernel_ids::recording(trace, process).is_ok()).collect()
}

/// Returns how many IDs of all processes were compared with a policy, and how many differ.
fn compare(trace: &Trace, policy: &str) -> (usize, usize) {
    let policy = find(policy).expect("a policy");
    processes(trace).into_iter().fold((0, 0), |(compared, different), process| {
        let recording = kernel_ids::recording(trace, process).expect("enough");
        let comparison = recording.compare(policy);
        (compared + comparison.compared, different + comparison.differences.len())
    })
}

#[test]
fn every_id_is_that_of_the_kernels_generation_and_not_of_another() {
    for (name, all, other) in [
        ("postgres.parquet", POSTGRES, "linux-6.3"),
        ("build.parquet", BUILD, "linux-6.13"),
        ("nginx.parquet", NGINX, "linux-6.3"),
    ] {
        let trace = trace(name);
        assert_eq!(compare(&trace, "linux-6.14"), (all, 0), "{name}");
        assert!(compare(&trace, other).1 > 0, "{name} and {other}");
    }
}

#[test]
fn an_altered_id_is_found() {
    let mut trace = trace("build.parquet");
    let ids = |trace: &Trace| compare(trace, "linux-6.14").1;
    assert_eq!(ids(&trace), 0);
    let process = processes(&trace)[0];
    let altered = trace.events.iter_mut().rev().find_map(|event| match &mut event.what {
        What::Id { thread, id, .. } if *thread == process => Some(id),
        _ => None,
    });
    *altered.expect("an ID of the process") += 1;
    assert_eq!(ids(&trace), 1);
}
