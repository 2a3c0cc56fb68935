//! The trace event format: it parses, and the slices of each thread nest.

use std::collections::HashMap;

use percid_tracing::{FlightRecorder, Format};
use serde_json::Value as Json;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

use crate::wait::wait_until;

fn events_of(bytes: usize, record: impl FnOnce()) -> Vec<Json> {
    let (layer, recorder) = FlightRecorder::builder().bytes_per_cpu(bytes).build();
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    tracing::dispatcher::with_default(&dispatch, record);
    let mut out = Vec::new();
    recorder.dump(Format::Chrome, &mut out).expect("a dump in memory");
    let mut trace: Json = serde_json::from_slice(&out).expect("JSON");
    let Json::Array(events) = trace["traceEvents"].take() else { panic!("no events: {trace}") };
    events
}

/// Returns slices as `name` at their beginning and `/name` at their end. Returns an error if an end
/// has no beginning, or the time goes backwards.
fn slices(events: &[Json]) -> Result<Vec<String>, String> {
    let mut open: HashMap<u64, Vec<String>> = HashMap::new();
    let mut before = 0.0;
    let mut slices = Vec::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        let time = event["ts"].as_f64().ok_or("no time")?;
        if time < before {
            return Err(format!("{time} after {before}"));
        }
        before = time;
        let thread = open.entry(event["tid"].as_u64().ok_or("no thread")?).or_default();
        match event["ph"].as_str() {
            Some("B") => {
                let name = event["name"].as_str().ok_or("no name")?;
                thread.push(name.to_owned());
                slices.push(name.to_owned());
            }
            Some("E") => slices.push(format!("/{}", thread.pop().ok_or("nothing to end")?)),
            Some("i") => (),
            phase => return Err(format!("{phase:?}")),
        }
    }
    match open.values().flatten().next() {
        None => Ok(slices),
        Some(name) => Err(format!("{name} does not end")),
    }
}

#[test]
fn spans_are_slices_that_nest() {
    let events = events_of(1 << 16, || {
        tracing::info_span!("outer", id = 17).in_scope(|| {
            tracing::info_span!("inner").in_scope(|| tracing::info!("inside"));
        });
    });
    let expected = ["outer", "inner", "/inner", "/outer"];
    assert_eq!(slices(&events).expect("nested slices"), expected);
    let outer = events.iter().find(|event| event["name"] == "outer").expect("a slice");
    assert_eq!(outer["args"]["id"], 17);
    assert!(events.iter().any(|event| event["ph"] == "i" && event["name"] == "inside"));
    assert!(events.iter().any(|event| event["ph"] == "M" && event["name"] == "thread_name"));
}

#[test]
fn spans_that_do_not_nest_are_slices_that_do() {
    let events = events_of(1 << 16, || {
        let (one, two) = (tracing::info_span!("one"), tracing::info_span!("two"));
        let one = one.enter();
        let two = two.enter();
        drop(one);
        drop(two);
    });
    let expected = ["one", "two", "/two", "/one", "two", "/two"];
    assert_eq!(slices(&events).expect("nested slices"), expected);
}

#[test]
fn spans_of_several_threads_nest() {
    let events = events_of(1 << 20, || {
        let dispatch = tracing::dispatcher::get_default(Dispatch::clone);
        let shared = tracing::info_span!("shared");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let _default = tracing::dispatcher::set_default(&dispatch);
                    for _ in 0..100 {
                        shared.in_scope(|| tracing::info_span!("own").in_scope(|| ()));
                    }
                });
            }
        });
    });
    assert_eq!(slices(&events).expect("nested slices").len(), 2 * 2 * 300);
}

/// Old records are overwritten, so there are ends whose beginnings are lost. If the thread migrates
/// to another CPU, its older records may remain and those between may be lost. Then a slice may
/// have no end, and the test is repeated.
#[test]
fn spans_whose_beginning_is_lost_do_not_break_the_nesting() {
    let beginning_is_lost = || {
        let events = events_of(8 << 10, || {
            tracing::info_span!("outer").in_scope(|| {
                for _ in 0..1000 {
                    tracing::info_span!("inner").in_scope(|| tracing::info!("inside"));
                }
            });
        });
        match slices(&events) {
            Ok(_) => events.iter().any(|event| event["name"] == "exit outer"),
            Err(error) if error.ends_with("does not end") => false,
            Err(error) => panic!("{error}"),
        }
    };
    wait_until("it stays on its CPU", beginning_is_lost);
}

/// Negative control: slices that do not nest are detected.
#[test]
fn the_check_of_nesting_finds_what_does_not_nest() {
    let events = events_of(1 << 16, || tracing::info_span!("span").in_scope(|| ()));
    let is = |phase: &'static str| move |event: &Json| event["ph"] == phase;
    let without = |phase| {
        let mut events = events.clone();
        events.retain(|event| !is(phase)(event));
        events
    };
    assert!(slices(&events).is_ok());
    assert!(slices(&without("B")).is_err());
    assert!(slices(&without("E")).is_err());
    let mut reversed = events.clone();
    reversed.reverse();
    assert!(slices(&reversed).is_err());
}
