//! Dumps on signals.
#![cfg(unix)]

use std::path::Path;

use percid_tracing::{FlightRecorder, Format};
use serde_json::Value as Json;
use signal_hook::consts::{SIGKILL, SIGSEGV, SIGUSR1, SIGUSR2};
use signal_hook::low_level::raise;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

#[cfg(target_os = "linux")]
use crate::dumps::{Dumps, sleeps};
use crate::wait::wait_until;

fn recorder() -> (Dispatch, FlightRecorder) {
    let (layer, recorder) = FlightRecorder::builder().build();
    (Dispatch::new(tracing_subscriber::registry().with(layer)), recorder)
}

fn record(dispatch: &Dispatch, round: u64) {
    tracing::dispatcher::with_default(dispatch, || tracing::info!(round));
}

/// Waits until a dump has this number of records.
fn wait_for(path: &Path, records: u64) {
    wait_until(&format!("a dump with {records} records"), || has_records(path, records));
}

fn has_records(path: &Path, records: u64) -> bool {
    let Ok(dump) = std::fs::read_to_string(path) else { return false };
    // A dump replaces the previous one when it is complete, so there is always a last line.
    let last = dump.lines().last().expect("a last line");
    let last: Json = serde_json::from_str(last).expect("JSON");
    last["records"] == records
}

#[test]
fn each_signal_dumps_once_and_nothing_else_does() {
    let folder = tempfile::tempdir().expect("a folder");
    #[cfg(target_os = "linux")]
    let mut dumps = Dumps::to(folder.path());
    let path = folder.path().join("dump.json");
    let (dispatch, recorder) = recorder();
    recorder.dump_on_signal(SIGUSR1, &path, Format::JsonLines).expect("a handler");
    for records in 1..=3 {
        record(&dispatch, records);
        raise(SIGUSR1).expect("a signal");
        wait_for(&path, records);
        #[cfg(target_os = "linux")]
        {
            wait_until("all is dumped", || sleeps().is_some());
            assert_eq!(dumps.count() as u64, records);
        }
    }
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
    for signal in [SIGKILL, SIGSEGV, 0, -1, 100, 127, 128, 1000, i32::MAX, i32::MIN] {
        let error = recorder.dump_on_signal(signal, "never", Format::Text).expect_err("no signal");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "signal {signal}");
    }
}
