//! Children of `fork`: they have the records and may record and dump. Signals to a child do not
//! dump its parent's recorder.
#![cfg(unix)]

#[cfg(target_os = "linux")]
#[path = "suite/dumps.rs"]
mod dumps;
#[path = "suite/wait.rs"]
mod wait;

use std::io;
use std::path::Path;

use percid_tracing::{FlightRecorder, Format};
use signal_hook::consts::SIGUSR1;
use signal_hook::low_level::raise;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;
use wait::wait_until;

/// Records and dumps in the child. Returns `None` if something fails.
fn child(dispatch: &Dispatch, recorder: &FlightRecorder, path: &Path) -> Option<()> {
    tracing::dispatcher::with_default(dispatch, || tracing::info!("in the child"));
    recorder.dump(Format::Text, std::fs::File::create(path).ok()?).ok()?;
    raise(SIGUSR1).ok()
}

/// Runs `f` in a child, and returns its exit status.
fn in_child(f: impl FnOnce() -> Option<()>) -> i32 {
    // SAFETY: after the fork, the child may call the C library. No other thread of this program
    // holds one of its locks at this moment.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = if f().is_some() { 0 } else { 1 };
        // SAFETY: `_exit` ends the process, and runs no Rust code after it.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "{}", io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: the pointer to the status is that of a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

fn has(dump: &Path, text: &str) -> bool {
    std::fs::read_to_string(dump).is_ok_and(|dump| dump.contains(text))
}

#[test]
fn a_child_records_and_dumps_on_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let [ours, theirs] = ["parent.txt", "child.txt"].map(|name| folder.path().join(name));
    let (layer, recorder) = FlightRecorder::builder().build();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    let record = |text| tracing::dispatcher::with_default(&dispatch, || tracing::info!("{text}"));
    recorder.dump_on_signal(SIGUSR1, &ours, Format::Text).expect("a handler");
    record("before the fork");
    raise(SIGUSR1).expect("a signal");
    wait_until("the parent's dump", || has(&ours, "before the fork"));
    #[cfg(target_os = "linux")]
    let (mut seen, mut before) = (dumps::Dumps::to(folder.path()), None);
    // Then it holds no lock, as a child of the fork requires.
    #[cfg(target_os = "linux")]
    wait_until("the thread that dumps sleeps", || {
        before = dumps::sleeps();
        before.is_some()
    });
    assert_eq!(in_child(|| child(&dispatch, &recorder, &theirs)), 0);
    let dump = std::fs::read_to_string(&theirs).expect("the child's dump");
    assert!(dump.contains("before the fork") && dump.contains("in the child"), "{dump}");
    // The child's signal wakes the parent's thread. Here that thread has begun or finished its
    // work.
    #[cfg(target_os = "linux")]
    wait_until("the thread that dumps was woken", || dumps::sleeps() > before);
    record("after the fork");
    raise(SIGUSR1).expect("a signal");
    wait_until("the parent's second dump", || has(&ours, "after the fork"));
    assert!(has(&ours, "before the fork") && !has(&ours, "in the child"));
    #[cfg(target_os = "linux")]
    wait_until("all is dumped", || dumps::sleeps().is_some());
    #[cfg(target_os = "linux")]
    assert_eq!(seen.count(), 1, "the parent dumps when a child gets a signal");
}
