//! Dumps on panics of this test program, in a process of its own.
#![cfg(not(target_family = "wasm"))]

use std::path::Path;
use std::process::{Command, Output};

use percid_tracing::{FlightRecorder, Format};
use tracing_subscriber::prelude::*;

const PATH: &str = "PERCID_TRACING_TEST_PATH";
const WHAT: &str = "PERCID_TRACING_TEST_WHAT";

/// Runs in the child processes.
#[test]
#[ignore = "the other tests run it in a process of its own"]
fn child() {
    let (layer, recorder) = FlightRecorder::builder().build();
    tracing_subscriber::registry().with(layer).init();
    let what = std::env::var(WHAT).expect("what to do");
    if what != "no hook" {
        std::panic::set_hook(Box::new(|info| eprintln!("the hook before: {info}")));
        recorder.dump_on_panic(std::env::var(PATH).expect("a path"), Format::Text);
    }
    tracing::info!(number = 17, "before the panic");
    if what == "caught" {
        let _ = std::panic::catch_unwind(|| panic!("caught"));
        return;
    }
    if what != "no panic" {
        panic!("on purpose");
    }
}

fn run(what: &str, path: &Path) -> Output {
    let program = std::env::current_exe().expect("the path of this program");
    Command::new(program)
        .args(["panic::child", "--exact", "--ignored", "--nocapture"])
        .env(PATH, path)
        .env(WHAT, what)
        .output()
        .expect("this program")
}

#[test]
fn a_panic_dumps_and_calls_the_hook_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.txt");
    for (what, ends_well) in [("panic", false), ("caught", true)] {
        let output = run(what, &path);
        assert_eq!(output.status.success(), ends_well, "{what}: {output:?}");
        let dump = std::fs::read_to_string(&path).expect("a dump");
        assert!(dump.contains("before the panic number=17"), "{what}: {dump}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("the hook before"), "{what}: {error}");
        std::fs::remove_file(&path).expect("the dump");
    }
    let left = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 0, "a partial dump is left");
}

/// Negative control: without a hook or a panic, there is no file.
#[test]
fn without_a_hook_or_a_panic_there_is_no_dump() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.txt");
    assert!(!run("no hook", &path).status.success());
    assert!(!path.exists());
    assert!(run("no panic", &path).status.success());
    assert!(!path.exists());
}

#[test]
fn a_dump_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run("panic", &folder.path().join("missing").join("dump.txt"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("flight recorder: no dump to"), "{error}");
    assert!(error.contains("the hook before"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_dump_that_fails_half_way_is_told_and_leaves_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dump.txt");
    std::fs::write(&path, "before").expect("a file");
    let partial = folder.path().join("dump.txt.partial");
    std::os::unix::fs::symlink("/dev/full", partial).expect("a link");
    let output = run("panic", &path);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("flight recorder: no dump to"), "{error}");
    assert!(error.contains("the hook before"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "before");
}
