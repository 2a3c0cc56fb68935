//! Dumps on signals.
#![cfg(unix)]

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use percid_tracing::{FlightRecorder, Format};
use serde_json::Value as Json;
use signal_hook::consts::{SIGKILL, SIGSEGV, SIGUSR1, SIGUSR2};
use signal_hook::low_level::raise;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

fn recorder() -> (Dispatch, FlightRecorder) {
    let (layer, recorder) = FlightRecorder::builder().build();
    (Dispatch::new(tracing_subscriber::registry().with(layer)), recorder)
}

fn record(dispatch: &Dispatch, round: u64) {
    tracing::dispatcher::with_default(dispatch, || tracing::info!(round));
}

/// Waits until a dump has as many records.
fn wait_for(path: &Path, records: u64) {
    let start = Instant::now();
    while !has_records(path, records) {
        assert!(start.elapsed() < Duration::from_secs(60), "no dump with {records} records");
        thread::sleep(Duration::from_millis(1));
    }
}

fn has_records(path: &Path, records: u64) -> bool {
    let Ok(dump) = std::fs::read_to_string(path) else { return false };
    // A dump takes its place when it is complete, so a last line is always there.
    let last = dump.lines().last().expect("a last line");
    let last: Json = serde_json::from_str(last).expect("JSON");
    last["records"] == records
}

#[test]
fn each_signal_dumps() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.json");
    let (dispatch, recorder) = recorder();
    recorder.dump_on_signal(SIGUSR1, &path, Format::JsonLines).expect("a handler");
    record(&dispatch, 1);
    // The control: nothing is written without a signal.
    thread::sleep(Duration::from_millis(50));
    assert!(!path.exists());
    raise(SIGUSR1).expect("a signal");
    wait_for(&path, 1);
    record(&dispatch, 2);
    raise(SIGUSR1).expect("a signal");
    wait_for(&path, 2);
}

#[test]
fn signals_while_threads_record_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.json");
    let (dispatch, recorder) = recorder();
    recorder.dump_on_signal(SIGUSR2, &path, Format::JsonLines).expect("a handler");
    for round in 0..2000 {
        record(&dispatch, round);
        raise(SIGUSR2).expect("a signal");
    }
    raise(SIGUSR2).expect("a signal");
    wait_for(&path, 2000);
}

#[test]
fn signals_that_cannot_be_handled_are_refused() {
    let (_, recorder) = recorder();
    for signal in [SIGKILL, SIGSEGV, 0, -1, 1000, i32::MAX, i32::MIN] {
        let error = recorder.dump_on_signal(signal, "never", Format::Text).expect_err("no signal");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "signal {signal}");
    }
}
