//! A trace in the forms in which Perfetto records, made by Perfetto's own classes
//! (`fixtures/perfetto/compact.py`).

use std::collections::{HashMap, HashSet};
use std::path::Path;

use percid_perfetto::TraceProcessor;
use percid_trace::event::{Event, Shares, Stage, Tid, UNKNOWN, What};
use percid_trace::{Trace, perfetto};
use serde_json::json;

const FILE: &[u8] = include_bytes!("../fixtures/perfetto/compact.pftrace");
const TEXT: &str = include_str!("../fixtures/perfetto/compact.txt");

fn thread(thread: Tid) -> String {
    if thread == UNKNOWN { "?".into() } else { thread.to_string() }
}

/// An event as a line of the text. Names are compared apart from the events.
fn line(event: &Event) -> Option<String> {
    let what = match event.what {
        What::Switch { prev, state, next } => format!("switch {} {} {next}", thread(prev), state.0),
        What::Wakeup { thread, target, stage: Stage::Waking } => {
            format!("waking {thread} {target}")
        }
        What::Migrate { thread, from, to } => format!("migrate {thread} {from} {to}"),
        What::Fork { parent, child, shares } => {
            let shares = match shares {
                Shares::Process => "process",
                Shares::Memory => "memory",
                Shares::Nothing => "nothing",
                Shares::Unknown => "?",
            };
            format!("fork {} {child} {shares}", thread(parent))
        }
        What::Id { thread, node, id } => format!("id {thread} {node} {id}"),
        What::Member { thread, process } => format!("member {thread} {process}"),
        What::Name { .. } => return None,
        other => format!("{other:?}"),
    };
    Some(format!("{} {} {what}", event.time, event.cpu))
}

/// The last name of each thread that has one.
fn names(trace: &Trace) -> HashMap<Tid, &str> {
    let mut names = HashMap::new();
    for event in &trace.events {
        if let What::Name { thread, name } = event.what {
            names.insert(thread, trace.texts.get(name));
        }
    }
    names
}

#[test]
fn what_perfetto_records_is_read() {
    let trace = perfetto::read(FILE).expect("a trace of Perfetto");
    let (lines, named): (Vec<&str>, Vec<&str>) =
        TEXT.lines().partition(|line| !line.starts_with("name "));
    let found: Vec<String> = trace.events.iter().filter_map(line).collect();
    for (found, expected) in found.iter().zip(&lines) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), lines.len());
    let names = names(&trace);
    for line in named {
        let (thread, name) = line["name ".len()..].split_once(' ').expect("a thread and a name");
        let thread = thread.parse().expect("a number");
        // Not every thread is shown by an event.
        assert_eq!(names.get(&thread).copied().unwrap_or(name), name);
    }
    assert!(names.len() > 12);
}

#[test]
fn the_origin_is_read() {
    let origin = perfetto::read(FILE).expect("a trace of Perfetto").origin;
    assert_eq!(origin.release.as_deref(), Some("6.6.56-android15"));
    assert_eq!(origin.online_cpus, Some(4));
    assert_eq!(origin.clock.as_deref(), Some("boot"));
    // 12 less 10 for each of the CPUs 1, 2 and 3, times their number.
    assert_eq!(origin.lost, 12);
}

/// Perfetto's trace processor reads the same switches out of the file, apart from the first of each
/// CPU: it has no use for one of which it does not know which thread ran before.
#[test]
fn the_trace_processor_reads_the_same() {
    let Some(processor) = TraceProcessor::find() else { return };
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/perfetto/compact.pftrace");
    let slices = "select ts, ucpu, tid from sched join thread using(utid) order by ts, ucpu";
    let answers = processor.query(&path, &[slices]).expect("a trace of Perfetto");
    let trace = perfetto::read(FILE).expect("a trace of Perfetto");
    let mut started = HashSet::new();
    let switches = trace.events.iter().filter_map(|event| match event.what {
        What::Switch { next, .. } if !started.insert(event.cpu) => {
            Some(vec![json!(event.time), json!(event.cpu), json!(next)])
        }
        _ => None,
    });
    let switches: Vec<_> = switches.collect();
    assert!(switches.len() > 100);
    for (found, expected) in answers[0].iter().zip(&switches) {
        assert_eq!(found, expected);
    }
    assert_eq!(answers[0].len(), switches.len());
}
