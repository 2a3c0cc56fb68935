//! Real traces of a database, a build and a web server, and those of the other tools. Stored,
//! exported and read again, they are the same. `formats_agree.rs` compares them with the formats of
//! other tools.

use percid_trace::event::{Event, What};
use percid_trace::{Trace, parquet, perfetto, read};

/// On big-endian machines Parquet is not supported.
const PARQUET: bool = cfg!(target_endian = "little");

const RECORDED: [&str; 10] = [
    "sched.data",
    "compressed.data",
    "forks.data",
    "pipe.data",
    "switches.data",
    "trace-cmd.txt",
    "tracefs.txt",
    "postgres.parquet",
    "build.parquet",
    "nginx.parquet",
];

fn readable() -> impl Iterator<Item = &'static str> {
    RECORDED.into_iter().filter(|name| PARQUET || !name.ends_with(".parquet"))
}

fn recorded(name: &str) -> Trace {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    read::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn through_parquet(trace: &Trace) -> Trace {
    let mut file = Vec::new();
    parquet::write(trace, &mut file).expect("memory takes it");
    read::read_bytes(&file).expect("our own file")
}

fn through_perfetto(trace: &Trace) -> Trace {
    let mut file = Vec::new();
    perfetto::write(trace, &[], &mut file).expect("memory takes it");
    read::read_bytes(&file).expect("our own file")
}

fn check(name: &str, format: &str, trace: &Trace, back: &Trace) {
    let difference = trace
        .first_difference(back)
        .map(|at| (at, trace.events.get(at).copied(), back.events.get(at).copied()));
    assert_eq!(difference, None, "{name} through {format}");
}

#[test]
fn stored_and_exported_traces_say_the_same() {
    for name in readable() {
        let trace = recorded(name);
        assert!(trace.events.len() > 20, "{name}");
        check(name, "Perfetto", &trace, &through_perfetto(&trace));
        if !PARQUET {
            continue;
        }
        let stored = through_parquet(&trace);
        check(name, "Parquet", &trace, &stored);
        assert_eq!(trace.origin, stored.origin, "{name}");
        check(name, "Parquet after Perfetto", &trace, &through_parquet(&through_perfetto(&trace)));
    }
}

/// The control: one changed event is noticed in every trace.
#[test]
fn a_changed_event_is_noticed() {
    for name in readable() {
        let trace = recorded(name);
        let mut changed = through_perfetto(&trace);
        let switches = |event: &Event| matches!(event.what, What::Switch { .. });
        let at = changed.events.iter().position(switches).expect("a switch");
        if let What::Switch { next, .. } = &mut changed.events[at].what {
            *next ^= 1;
        }
        assert_eq!(trace.first_difference(&changed), Some(at), "{name}");
    }
}

#[test]
#[cfg(target_endian = "big")]
fn parquet_is_refused_and_not_called_damaged() {
    let refused = |result: Result<(), percid_trace::Error>| {
        let error = result.expect_err("no Parquet here").to_string();
        assert!(error.contains("on little-endian machines only"), "{error}");
    };
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/build.parquet");
    refused(read::read(&path).map(|_| ()));
    refused(parquet::write(&recorded("sched.data"), &mut Vec::new()));
}
