//! Recordings of `perf` on this machine are read as `perf script` reads them.

use crate::fixture;

use std::path::Path;
use std::process::Command;

use fixture::{assert_same, names, without_names};
use percid_trace::event::What;
use percid_trace::read;

/// Runs a command; its output, or why there is none.
fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Passes the test over because something is missing, unless the environment forbids that.
fn skip(missing: &str) {
    assert!(std::env::var_os("PERCID_TRACE").is_none_or(|value| value != "require"), "{missing}");
    percid_skips::not_checked("files of perf", missing);
}

const EVENTS: [&str; 10] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_migrate_task",
    "sched:sched_process_fork",
    "sched:sched_process_exec",
    "sched:sched_process_exit",
    "task:task_newtask",
    "task:task_rename",
];

/// Records a short program by the way, and what `perf script` makes of it.
fn record(file: &Path, options: &[&str]) -> Result<Vec<u8>, String> {
    let events = EVENTS.join(",");
    run(Command::new("perf")
        .args(["record", "-q", "-B", "-N", "-m", "1M", "-e", &events, "-o"])
        .arg(file)
        .args(options)
        .args(["--", "sh", "-c", "sleep 0.01; echo | cat; (sleep 0.01 & sleep 0.01; wait)"]))?;
    run(Command::new("perf").args(["script", "--ns", "-i"]).arg(file))
}

fn compare(name: &str, options: &[&str]) {
    let directory = std::env::temp_dir().join(format!("percid-live-{}-{name}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory");
    let file = directory.join("perf.data");
    let recorded = record(&file, options);
    let data = recorded.as_ref().ok().map(|_| read::read(&file));
    std::fs::remove_dir_all(&directory).expect("the directory is removed");
    let (script, data) = match (recorded, data) {
        (Ok(script), Some(data)) => (script, data.expect("perf.data is read")),
        (Err(missing), _) => return skip(&missing),
        _ => unreachable!("there is data if there is a script"),
    };
    let script = read::read_bytes(&script).expect("perf script's lines are read");
    assert!(data.events.iter().any(|event| matches!(event.what, What::Exec { .. })));
    let (in_data, in_script) = (names(&data), names(&script));
    for (thread, names) in in_script {
        assert_eq!(in_data.get(&thread).map(|names| names.last()), Some(names.last()), "{thread}");
    }
    assert_same(&without_names(data), &without_names(script));
}

#[test]
fn perf_data_of_this_machine_says_what_perf_script_says() {
    compare("plain", &["-a"]);
}

#[test]
fn compressed_perf_data_of_this_machine_says_what_perf_script_says() {
    compare("compressed", &["-a", "-z"]);
}

#[test]
fn samples_with_more_than_the_tracepoint_are_read() {
    compare("more", &["-a", "-g", "-d", "--phys-data", "-k", "mono"]);
}

#[test]
fn buffers_that_are_written_backwards_are_read() {
    compare("backwards", &["-a", "--overwrite"]);
}

#[test]
fn recordings_of_one_program_are_read() {
    compare("one", &[]);
}

#[test]
fn other_events_are_passed_over() {
    compare("others", &["-a", "-e", "page-faults,cpu-clock"]);
}
