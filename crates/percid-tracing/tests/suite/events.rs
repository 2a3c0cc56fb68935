//! A dump has exactly the recorded events.

use std::io::{self, Write};
use std::thread;

use percid_tracing::{Dumped, FlightRecorder, Format};
use serde_json::Value as Json;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

use crate::wait::wait_until;

fn recorder(bytes: usize) -> (Dispatch, FlightRecorder) {
    let (layer, recorder) = FlightRecorder::builder().bytes_per_cpu(bytes).build();
    (Dispatch::new(tracing_subscriber::registry().with(layer)), recorder)
}

fn record(dispatch: &Dispatch, f: impl FnOnce()) {
    tracing::dispatcher::with_default(dispatch, f);
}

fn dump(recorder: &FlightRecorder, format: Format) -> (Dumped, String) {
    let mut out = Vec::new();
    let dumped = recorder.dump(format, &mut out).expect("a dump in memory");
    (dumped, String::from_utf8(out).expect("text"))
}

/// Returns the records, without the line about the dump.
fn records(recorder: &FlightRecorder) -> (Dumped, Vec<Json>) {
    let (dumped, out) = dump(recorder, Format::JsonLines);
    let mut lines: Vec<Json> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = lines.pop().expect("a last line");
    assert_eq!((&last["kind"], &last["lost"]), (&"dump".into(), &dumped.lost.into()));
    assert_eq!(lines.len() as u64, dumped.records);
    (dumped, lines)
}

/// Starts threads that each record the same number of numbered events.
fn record_by_threads(dispatch: &Dispatch, threads: u64, events: u64) {
    thread::scope(|scope| {
        for writer in 0..threads {
            let named = thread::Builder::new().name(format!("writer {writer}"));
            let work = move || {
                record(dispatch, || {
                    for number in 0..events {
                        tracing::info!(writer, number, text = "value", half = 0.5, "event");
                    }
                });
            };
            named.spawn_scoped(scope, work).expect("a thread");
        }
    });
}

/// Returns the numbers of a thread's events, in their order.
fn numbers_of(records: &[Json], writer: u64) -> Vec<u64> {
    let own = records.iter().filter(|record| record["fields"]["writer"] == writer);
    own.inspect(|record| check(record, writer))
        .map(|record| record["fields"]["number"].as_u64().expect("a number"))
        .collect()
}

fn check(record: &Json, writer: u64) {
    assert_eq!(record["kind"], "event");
    assert_eq!(record["level"], "INFO");
    assert_eq!(record["target"], module_path!());
    assert_eq!(record["thread_name"], format!("writer {writer}"));
    assert_eq!(record["cpu"].is_u64(), cfg!(all(target_os = "linux", target_env = "gnu")));
    let fields = &record["fields"];
    assert_eq!((&fields["text"], &fields["half"]), (&"value".into(), &0.5.into()));
    assert_eq!(fields["message"], "event");
    assert_eq!(fields.as_object().map(|fields| fields.len()), Some(5));
}

#[test]
fn all_events_are_there_in_the_order_of_each_thread() {
    let (dispatch, recorder) = recorder(1 << 20);
    record_by_threads(&dispatch, 4, 1000);
    let (dumped, records) = records(&recorder);
    assert_eq!((dumped.records, dumped.lost, dumped.damaged), (4000, 0, 0));
    for writer in 0..4 {
        assert_eq!(numbers_of(&records, writer), (0..1000).collect::<Vec<_>>(), "writer {writer}");
    }
}

#[test]
fn the_newest_are_kept_and_the_others_counted() {
    let (dispatch, recorder) = recorder(16 << 10);
    record_by_threads(&dispatch, 4, 5000);
    let (dumped, records) = records(&recorder);
    assert_eq!(dumped.records + dumped.lost, 20_000);
    assert!(dumped.lost > 0 && dumped.records > 0);
    // Each event has less than 128 bytes with its header, and an eighth may have been dropped.
    assert!(dumped.records >= (16 << 10) * 7 / 8 / 128, "{dumped:?}");
    for writer in 0..4 {
        assert!(numbers_of(&records, writer).is_sorted(), "writer {writer}");
    }
}

/// A thread that migrates to another CPU leaves older events there. Then the test is repeated.
#[test]
fn one_thread_keeps_its_newest_events() {
    let keeps_the_newest = || {
        let (dispatch, recorder) = recorder(8 << 10);
        record_by_threads(&dispatch, 1, 5000);
        let (dumped, records) = records(&recorder);
        let numbers = numbers_of(&records, 0);
        // Its last event is the last of its CPU, for any CPU.
        assert_eq!(numbers.last(), Some(&4999));
        numbers == (dumped.lost..5000).collect::<Vec<_>>()
    };
    wait_until("it stays on its CPU", keeps_the_newest);
}

#[test]
fn a_dump_leaves_the_records_for_the_next() {
    let (dispatch, recorder) = recorder(8 << 10);
    let mut recorded = 0;
    for round in 0..100 {
        record(&dispatch, || tracing::info!(round));
        recorded += 1;
        let (dumped, records) = records(&recorder);
        assert_eq!(dumped.records + dumped.lost, recorded);
        assert_eq!(records.last().expect("a record")["fields"]["round"], round);
        assert!(dumped.lost == 0 || dumped.records > 50, "{dumped:?}");
    }
    record_by_threads(&dispatch, 2, 5000);
    let (dumped, _) = records(&recorder);
    assert_eq!(dumped.records + dumped.lost, recorded + 10_000);
}

#[test]
fn dumps_while_others_record_are_whole() {
    let (dispatch, recorder) = recorder(32 << 10);
    thread::scope(|scope| {
        let writers = scope.spawn(|| record_by_threads(&dispatch, 2, 20_000));
        while !writers.is_finished() {
            let (dumped, _) = records(&recorder);
            assert_eq!(dumped.damaged, 0);
        }
    });
    let (dumped, _) = records(&recorder);
    assert_eq!(dumped.records + dumped.lost, 40_000);
}

const NASTY: &str = "line\nbreak \"quotes\" \\ \u{1b}[31mred\u{202e}\0 ]}";

#[test]
fn text_in_records_does_not_break_the_output() {
    let (dispatch, recorder) = recorder(8 << 10);
    record(&dispatch, || {
        tracing::info!(target: "tar\nget", value = NASTY, debug = ?NASTY, "{NASTY}");
        let span = tracing::info_span!("na\nme", NASTY);
        span.in_scope(|| tracing::info!("inside"));
    });
    let (_, lines) = records(&recorder);
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["fields"]["value"], NASTY);
    assert_eq!(lines[0]["fields"]["message"], NASTY);
    let (_, text) = dump(&recorder, Format::Text);
    assert_eq!(text.lines().count(), 1 + 6, "{text}");
    let printed = |character: char| !character.is_control() && character != '\u{202e}';
    assert!(text.lines().all(|line| line.chars().all(printed)), "{text}");
    let (_, chrome) = dump(&recorder, Format::Chrome);
    serde_json::from_str::<Json>(&chrome).expect("JSON");
}

#[test]
fn numbers_that_json_does_not_have_and_cuts_are_shown() {
    let (dispatch, recorder) = recorder(8 << 10);
    let long = "x".repeat(600);
    record(&dispatch, || {
        tracing::info!(nan = f64::NAN, big = u128::MAX, least = i64::MIN, long);
        tracing::info!(a = long, b = long, c = long);
    });
    let (_, lines) = records(&recorder);
    let fields = &lines[0]["fields"];
    assert_eq!((&fields["nan"], &fields["least"]), (&"NaN".into(), &i64::MIN.into()));
    assert_eq!(fields["big"], u128::MAX.to_string());
    assert_eq!(fields["long"], format!("{}…", "x".repeat(512)));
    assert_eq!(
        (&lines[0]["cut"], &lines[0]["fields_left_out"]),
        (&["long"][..].into(), &Json::Null)
    );
    assert_eq!(lines[1]["fields_left_out"], true);
    let (_, text) = dump(&recorder, Format::Text);
    assert!(text.contains("least=-9223372036854775808") && text.contains("(fields left out)"));
    assert!(text.contains("xxx\"…"), "{text}");
}

#[test]
fn filters_choose() {
    let (layer, recorder) = FlightRecorder::builder().build();
    let filter = tracing_subscriber::filter::LevelFilter::INFO;
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer.with_filter(filter)));
    record(&dispatch, || {
        let span = tracing::info_span!("shown");
        let _entered = span.enter();
        let hidden = tracing::debug_span!("hidden");
        let _entered = hidden.enter();
        tracing::debug!("hidden");
        tracing::info!("shown");
    });
    let (_, lines) = records(&recorder);
    let event = lines.iter().find(|line| line["kind"] == "event").expect("an event");
    assert_eq!(event["parent"]["name"], "shown");
    let (_, text) = dump(&recorder, Format::Text);
    assert!(!text.contains("hidden"), "{text}");
}

#[test]
fn the_errors_of_a_writer_are_returned() {
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let (dispatch, recorder) = recorder(64 << 10);
    // More than the buffer of the writer.
    record_by_threads(&dispatch, 1, 400);
    for format in [Format::Text, Format::JsonLines, Format::Chrome] {
        let error = recorder.dump(format, Full).expect_err("a full disk");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
