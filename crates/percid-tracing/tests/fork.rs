//! Children of `fork`: they have the records, may record and dump, and take no signals of their
//! parent's recorder.
#![cfg(unix)]

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use percid_tracing::{FlightRecorder, Format};
use signal_hook::consts::SIGUSR1;
use signal_hook::low_level::raise;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

/// What the child does; `None` if something fails.
fn child(dispatch: &Dispatch, recorder: &FlightRecorder, path: &Path) -> Option<()> {
    tracing::dispatcher::with_default(dispatch, || tracing::info!("in the child"));
    recorder.dump(Format::Text, std::fs::File::create(path).ok()?).ok()?;
    raise(SIGUSR1).ok()
}

/// Runs `f` in a child, and returns its exit status.
fn in_child(f: impl FnOnce() -> Option<()>) -> i32 {
    // SAFETY: the child calls what the C library lets it call: this program has no thread that
    // holds one of its locks at this moment but the one that forks.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = if f().is_some() { 0 } else { 1 };
        // SAFETY: it ends the process, and nothing of Rust's is run.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "{}", io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: the status is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

#[test]
fn a_child_records_and_dumps_on_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let [ours, theirs] = ["parent.txt", "child.txt"].map(|name| folder.path().join(name));
    let (layer, recorder) = FlightRecorder::builder().build();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    recorder.dump_on_signal(SIGUSR1, &ours, Format::Text).expect("a handler");
    tracing::dispatcher::with_default(&dispatch, || tracing::info!("before the fork"));
    assert_eq!(in_child(|| child(&dispatch, &recorder, &theirs)), 0);
    let dump = std::fs::read_to_string(&theirs).expect("the child's dump");
    assert!(dump.contains("before the fork") && dump.contains("in the child"), "{dump}");
    // The child's signal has woken the parent's thread, if any.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!ours.exists(), "the parent dumps when a child gets a signal");
    raise(SIGUSR1).expect("a signal");
    let start = Instant::now();
    while !ours.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "no dump");
        std::thread::sleep(Duration::from_millis(1));
    }
    let dump = std::fs::read_to_string(&ours).expect("the parent's dump");
    assert!(dump.contains("before the fork") && !dump.contains("in the child"), "{dump}");
}
