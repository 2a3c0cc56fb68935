//! The tracer: what its traces must have, whatever was lost, and what they must have if nothing
//! was.

use crate::program;
use crate::scratch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use percid::Source;
use program::{Outcome, sources};
use scratch::Scratch;
use serde_json::{Value, json};

const TRACER: &str = env!("CARGO_BIN_EXE_tracer");

/// A trace that was read back.
struct Trace {
    /// The events of every thread, in the order of the file.
    threads: BTreeMap<u64, Vec<Value>>,
    metadata: Value,
    stderr: String,
}

impl Trace {
    /// Runs the tracer. The file has what was printed as well.
    fn record(source: Option<Source>, arguments: &str) -> Trace {
        let output = scratch();
        let arguments: Vec<_> =
            arguments.split_whitespace().chain(["--json", output.path()]).collect();
        Trace::read(&output, &program::run(TRACER, source, &arguments))
    }

    /// Records like [`record`](Trace::record), on one CPU only: all events are in one ring, in
    /// their order.
    fn record_on_one_cpu(source: Option<Source>, arguments: &str) -> Trace {
        let cpu = percid::machine::read().allowed.iter().next().expect("a CPU").to_string();
        let output = scratch();
        let pinned = ["--cpu-list", &cpu, TRACER, "--json", output.path()];
        let arguments: Vec<_> = pinned.into_iter().chain(arguments.split_whitespace()).collect();
        Trace::read(&output, &program::run("taskset", source, &arguments))
    }

    fn read(output: &Scratch, outcome: &Outcome) -> Trace {
        let text = fs::read_to_string(&output.0).expect("the trace");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["otherData"], outcome.report(), "the summary is in the trace");
        let mut threads: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        for event in document["traceEvents"].as_array().expect("a list") {
            let thread = event["tid"].as_u64().expect("a thread");
            let events = threads.entry(thread).or_default();
            match event["ph"].as_str() {
                Some("M") => assert!(events.is_empty() && event["args"]["name"].is_string()),
                _ => events.push(event.clone()),
            }
        }
        let metadata = document["otherData"].clone();
        Trace { threads, metadata, stderr: outcome.stderr.clone() }
    }

    fn events(&self) -> impl Iterator<Item = &Value> {
        self.threads.values().flatten()
    }

    fn number(&self, field: &str) -> u64 {
        self.metadata[field].as_u64().unwrap_or_else(|| panic!("{field}: {}", self.metadata))
    }

    /// Returns `true` if a span of this name and task began.
    fn began(&self, name: &str, task: u64) -> bool {
        self.events().any(|it| is_begin(it) && it["name"] == name && it["args"]["task"] == task)
    }

    /// Checks the requirements for every trace.
    fn check(&self) {
        self.threads.values().for_each(|events| check_thread(events));
        let [recorded, delivered, lost] =
            ["recorded", "delivered", "lost"].map(|field| self.number(field));
        assert_eq!(recorded, delivered + lost, "{}", self.metadata);
        let [left_out, added] = ["ends_left_out", "ends_added"].map(|field| self.number(field));
        assert_eq!(self.events().count() as u64, delivered - left_out + added, "{}", self.metadata);
        let lost_ends = self.events().filter(|event| event["args"]["end"] == "lost").count();
        assert_eq!(lost_ends as u64, added, "{}", self.metadata);
        let told = self.stderr.contains(&format!("{lost} of {recorded} events were lost"));
        assert_eq!(told, lost != 0, "{}", self.stderr);
    }

    /// Checks the requirements for a trace without losses.
    fn check_complete(&self, tasks: u64) {
        assert_eq!((self.number("ends_left_out"), self.number("ends_added")), (0, 0));
        for name in ["submit", "task", "fill", "sort"] {
            let begun = self.events().filter(|it| is_begin(it) && it["name"] == name);
            let numbers: Vec<_> = begun.filter_map(|it| it["args"]["task"].as_u64()).collect();
            assert_eq!(numbers.len() as u64, tasks, "{name}");
            assert_eq!(
                numbers.into_iter().collect::<BTreeSet<_>>(),
                (0..tasks).collect(),
                "{name}"
            );
        }
        // Around each task a wait, and one for the end.
        let waits = self.events().filter(|it| is_begin(it) && it["name"] == "wait").count();
        assert_eq!(waits as u64, tasks + self.number("threads"));
    }
}

fn scratch() -> Scratch {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    Scratch::new(&format!("trace-{}.json", NUMBER.fetch_add(1, Relaxed)))
}

fn is_begin(event: &Value) -> bool {
    event["ph"] == "B"
}

/// Checks the events of one thread: in the order of time, every begin with its end, spans nested.
fn check_thread(events: &[Value]) {
    let times: Vec<f64> = events.iter().filter_map(|event| event["ts"].as_f64()).collect();
    assert_eq!(times.len(), events.len());
    assert!(times.is_sorted());
    let mut open = Vec::new();
    for event in events {
        match event["ph"].as_str() {
            Some("B") => open.push(&event["name"]),
            Some("E") => assert_eq!(open.pop(), Some(&event["name"])),
            _ => panic!("no phase: {event}"),
        }
    }
    assert!(open.is_empty(), "without end: {open:?}");
}

/// The ring has space for everything. Even then an event may be lost if a thread has no ID at the
/// moment, or shares one: it is counted, and the run is repeated.
#[test]
fn a_trace_without_loss_has_everything() {
    for source in sources() {
        let is_complete = || {
            let trace = Trace::record(source, "--threads 4 --tasks 500 --ring 1048576");
            trace.check();
            let nothing_lost = trace.number("lost") == 0;
            if nothing_lost {
                trace.check_complete(500);
            }
            if let Some(source) = source {
                assert_eq!(trace.metadata["source"], source.to_string());
            }
            nothing_lost
        };
        let end = Instant::now() + Duration::from_secs(600);
        while !is_complete() {
            assert!(Instant::now() < end, "{source:?}: every trace lost something");
        }
    }
}

/// The largest rings fill a slot of percid's memory each, and threads that race for the first use
/// of one request several.
#[test]
fn the_largest_rings_survive_a_race_for_their_first_use() {
    for source in sources() {
        (0..10)
            .for_each(|_| Trace::record(source, "--threads 8 --tasks 20 --ring 8388608").check());
    }
}

#[test]
fn what_is_lost_is_told_and_the_rest_is_in_order() {
    for source in sources() {
        for policy in ["drop-newest", "overwrite-oldest"] {
            let arguments = format!("--threads 4 --tasks 2000 --ring 1024 --overflow {policy}");
            let trace = Trace::record(source, &arguments);
            assert!(trace.number("lost") > 0, "{source:?}: {}", trace.metadata);
            assert!(trace.number("delivered") > 0, "{source:?}: {}", trace.metadata);
            assert_eq!(trace.metadata["overflow"], policy);
            trace.check();
        }
    }
}

/// One worker on one CPU: its last wait has the number of tasks.
#[test]
fn a_flight_recorder_keeps_the_newest_and_dropping_keeps_the_oldest() {
    for source in sources() {
        let common = "--threads 1 --tasks 1000 --ring 4096";
        let newest = Trace::record_on_one_cpu(source, &format!("{common} --flight-recorder"));
        newest.check();
        assert!(newest.began("wait", 1000) && !newest.began("submit", 0), "{source:?}");
        let kept = newest.number("delivered");
        // The CPU's ring; and the shared one, if a thread was preempted while it appended.
        assert!((60..=2 * 4096 / 40).contains(&kept), "{source:?}: {}", newest.metadata);

        let oldest = Trace::record_on_one_cpu(source, &format!("{common} --poll-ms 1000000"));
        oldest.check();
        assert!(oldest.began("submit", 0) && !oldest.began("wait", 1000), "{source:?}");
    }
}

/// The negative control: what the tests look for is seen if it is there.
#[test]
fn a_spoilt_trace_is_noticed() {
    let trace = Trace::record(None, "--threads 1 --tasks 20 --ring 1048576");
    trace.check();
    let worker = &trace.threads[&1];
    let notices = |spoil: fn(&mut Vec<Value>)| {
        let mut events = worker.clone();
        spoil(&mut events);
        std::panic::catch_unwind(|| check_thread(&events)).is_err()
    };
    assert!(!notices(|_| ()));
    assert!(notices(|events| _ = events.remove(7)));
    assert!(notices(|events| _ = events.pop()));
    assert!(notices(|events| events.swap(2, 3)));
    assert!(notices(|events| events[9]["ts"] = json!(0.0)));
}

#[test]
fn text_says_how_it_went() {
    let output = scratch();
    let outcome = program::run(TRACER, None, &["--tasks", "10", output.path()]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains(" events written, "), "{}", outcome.stdout);
}

#[test]
fn errors_name_what_is_wrong() {
    let cases: [(&[&str], i32, &str); 9] = [
        (&["/no/such/directory/trace.json"], 1, "/no/such/directory/trace.json: No such file"),
        (&["/"], 1, "/: Is a directory"),
        (&["/dev/full"], 1, "/dev/full: No space left"),
        (&[], 2, "OUTPUT is missing"),
        (&["--ring", "1000", "t"], 2, "--ring must be a power of two from 128 to 8388608"),
        (&["--ring", "64", "t"], 2, "--ring must be"),
        (&["--overflow", "block", "t"], 2, "expected drop-newest or overwrite-oldest"),
        (&["--flight-recorder", "--overflow", "drop-newest", "t"], 2, "keeps the newest"),
        (&["--threads", "0", "t"], 2, "--threads must be 1 to"),
    ];
    for (arguments, status, message) in cases {
        let outcome = program::run(TRACER, None, arguments);
        assert_eq!(outcome.status, status, "{arguments:?}");
        assert!(outcome.stderr.contains(message), "{arguments:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{arguments:?}");
    }
    let help = program::run(TRACER, None, &["--help"]);
    assert!(help.status == 0 && help.stdout.contains("Usage: tracer"), "{help:?}");
}
