//! The three formats of a dump, with all values.

use std::io;

use serde_json::{Value as Json, json};
use tracing_core::field::Visit;
use tracing_core::{Callsite, Interest, Kind as Of, Level, Metadata, metadata};
use tracing_subscriber::{Layer, Registry};

use crate::callsites::NONE;
use crate::encode::{Encoder, Head};
use crate::layout::Kind::{self, *};
use crate::snapshot::RecorderSnapshot;
use crate::{Dumped, FlightRecorder, Format, format, thread};

struct Nowhere;

impl Callsite for Nowhere {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        &EVENT
    }
}

static NOWHERE: Nowhere = Nowhere;

static EVENT: Metadata<'static> = metadata! {
    name: "event", target: "far\taway", level: Level::WARN,
    fields: &["message", "i64", "u64", "f64", "nan", "i128", "u128", "yes", "no", "str", "debug"],
    callsite: &NOWHERE, kind: Of::EVENT,
};
static INNER: Metadata<'static> = metadata! {
    name: "inner", target: "near", level: Level::INFO, fields: &["message", "n"],
    callsite: &NOWHERE, kind: Of::SPAN,
};
static OUTER: Metadata<'static> = metadata! {
    name: "outer", target: "near", level: Level::TRACE, fields: &[],
    callsite: &NOWHERE, kind: Of::SPAN,
};

/// A named thread, and an unknown one.
#[derive(Clone, Copy)]
struct Threads {
    worker: u32,
    system: Option<u32>,
    other: u32,
}

impl Threads {
    fn new() -> Threads {
        #[cfg(target_os = "linux")]
        // SAFETY: `gettid` has no arguments, and changes nothing.
        let number = || (thread::number(), Some(unsafe { libc::gettid() } as u32));
        #[cfg(not(target_os = "linux"))]
        let number = || (thread::number(), None);
        let named = std::thread::Builder::new().name("work\ner".to_owned());
        let worker = named.spawn(number).expect("a thread").join().expect("a number");
        Threads { worker: worker.0, system: worker.1, other: u32::MAX }
    }
}

/// Returns the time of a record in nanoseconds. The fractions of a second go from zero in the first
/// record to the maximum in the twelfth.
fn time_of(record: u64) -> u64 {
    record * 1_000_000_000 + (record - 1) * 999_999_999 / 11
}

/// Records these, with the times of [`time_of`].
fn recorded(records: &[(Kind, u64, u32, Option<u16>)]) -> FlightRecorder {
    let (_layer, recorder) = FlightRecorder::builder().build();
    let recording = recorder.recording();
    let number = |metadata| recording.callsites.number(metadata);
    let callsite = |span| [NONE, number(&OUTER), number(&INNER)][span as usize];
    for (time, &(kind, span, thread, cpu)) in (1..).zip(records) {
        let other = if span == 2 && kind.has_other() { 1 } else { 0 };
        let head = Head {
            kind,
            cpu,
            time: time_of(time),
            thread,
            callsite: if kind == Event { number(&EVENT) } else { callsite(span) },
            span,
            other_callsite: callsite(if kind == Event { span } else { other }),
            other,
        };
        let mut encoder_bytes = [0; 1024];
        let mut encoder = Encoder::begin(&mut encoder_bytes, &head);
        match kind {
            Event if span > 0 => fill(&mut encoder),
            New | Set if span == 2 => {
                encoder.record_u64(&INNER.fields().field("n").expect("a field"), time);
            }
            _ => (),
        }
        recording.append(encoder.finish());
    }
    recorder
}

/// Adds values of all types. There is no room for the last field.
fn fill(encoder: &mut Encoder<'_>) {
    let field = |name| EVENT.fields().field(name).expect("a field");
    encoder.record_debug(&field("message"), &format_args!("so \"it\" is\n"));
    encoder.record_i64(&field("i64"), -1);
    encoder.record_u64(&field("u64"), u64::MAX);
    encoder.record_f64(&field("f64"), 2.0);
    encoder.record_f64(&field("nan"), f64::NAN);
    encoder.record_i128(&field("i128"), -2);
    encoder.record_u128(&field("u128"), 3);
    encoder.record_bool(&field("yes"), true);
    encoder.record_bool(&field("no"), false);
    encoder.record_str(&field("str"), &"s".repeat(600));
    encoder.record_debug(&field("debug"), &format_args!("{}", "d".repeat(600)));
    encoder.record_str(&field("str"), "no room");
}

/// Returns records of spans that overlap, an event with all values, and one without values.
fn all(threads: Threads) -> Vec<(Kind, u64, u32, Option<u16>)> {
    let Threads { worker, other, .. } = threads;
    vec![
        (New, 1, worker, None),
        (New, 2, worker, None),
        (Follows, 2, worker, None),
        (Enter, 1, worker, None),
        (Enter, 2, worker, None),
        (Event, 2, worker, Some(7)),
        (Set, 2, worker, None),
        (Exit, 1, worker, None),
        (Close, 2, other, None),
        (Exit, 2, worker, None),
        (Enter, 2, worker, None),
        (Event, 0, other, None),
    ]
}

/// Number of bytes that were left for the text that was cut last.
const DEBUG: usize = 1024 - 36 - (4 + 11) - 4 * 10 - 2 * 18 - 2 * 2 - (4 + 512) - 4;

fn dumped(recorder: &FlightRecorder, format: Format) -> String {
    let mut out = Vec::new();
    let dumped = recorder.dump(format, &mut out).expect("a dump in memory");
    assert_eq!(dumped, Dumped { records: 12, lost: 0, damaged: 0 });
    String::from_utf8(out).expect("text")
}

/// Parses JSON. Expected texts are parsed too, because the last digit of a float may differ.
fn read(text: &str) -> Json {
    serde_json::from_str(text).expect("JSON")
}

/// Returns the ID of each record, by time: the ID of the CPU that recorded it.
fn ids(recorder: &FlightRecorder) -> Vec<Option<u32>> {
    let mut ids: Vec<_> = recorder
        .recording()
        .look(|held, _| held.iter().map(|(id, bytes)| (bytes[8..16].to_vec(), id)).collect());
    ids.sort_by_key(|(time, _)| u64::from_le_bytes(time[..].try_into().expect("8 bytes")));
    ids.into_iter().map(|(_, id)| id).collect()
}

fn started_at(recorder: &FlightRecorder) -> f64 {
    recorder.recording().clock.started_at.as_secs_f64()
}

#[test]
fn text_shows_each_record_in_a_line() {
    let threads = Threads::new();
    let recorder = recorded(&all(threads));
    let (w, o) = (threads.worker, threads.other);
    let (process, started, d) = (std::process::id(), started_at(&recorder), "d".repeat(DEBUG));
    let s = "s".repeat(512);
    let expected = format!(
        "flight recorder of process {process}, built {started:.6} s after 1970: \
         12 records, 0 lost, 0 damaged
     1.000000000 {w}(work\\ner) TRACE near: new outer#1
     2.090909090 {w}(work\\ner) INFO  near: new inner#2 n=2 in outer#1
     3.181818181 {w}(work\\ner) INFO  near: follows inner#2 after outer#1
     4.272727272 {w}(work\\ner) TRACE near: enter outer#1
     5.363636363 {w}(work\\ner) INFO  near: enter inner#2
     6.454545454 {w}(work\\ner) cpu7 WARN  far\\taway: so \"it\" is\\n i64=-1 u64=18446744073709551615 \
         f64=2.0 nan=NaN i128=-2 u128=3 yes=true no=false str=\"{s}\"… debug={d}… (fields left out) \
         in inner#2
     7.545454544 {w}(work\\ner) INFO  near: record inner#2 n=7
     8.636363635 {w}(work\\ner) TRACE near: exit outer#1
     9.727272726 {o} INFO  near: close inner#2
    10.818181817 {w}(work\\ner) INFO  near: exit inner#2
    11.909090908 {w}(work\\ner) INFO  near: enter inner#2
    12.999999999 {o} WARN  far\\taway:
"
    );
    assert_eq!(dumped(&recorder, Format::Text), expected);
}

/// Returns the values of the event that has all.
fn fields() -> Json {
    json!({
        "message": "so \"it\" is\n", "i64": -1, "u64": u64::MAX, "f64": 2.0, "nan": "NaN",
        "i128": "-2", "u128": "3", "yes": true, "no": false,
        "str": "s".repeat(512) + "…", "debug": "d".repeat(DEBUG) + "…",
    })
}

#[test]
fn json_lines_have_all_that_there_is_and_no_more() {
    let threads = Threads::new();
    let recorder = recorded(&all(threads));
    let inner =
        json!({"level": "INFO", "target": "near", "name": "inner", "span": 2, "fields": {}});
    let outer =
        json!({"level": "TRACE", "target": "near", "name": "outer", "span": 1, "fields": {}});
    let event = json!({"level": "WARN", "target": "far\taway", "name": "event", "fields": {}});
    let other = json!({"span": 1, "name": "outer"});
    let kinds = [
        ("new_span", &outer, json!({})),
        ("new_span", &inner, json!({"parent": other, "fields": {"n": 2}})),
        ("follows_from", &inner, json!({"follows": other})),
        ("enter", &outer, json!({})),
        ("enter", &inner, json!({})),
        (
            "event",
            &event,
            json!({
                "parent": {"span": 2, "name": "inner"}, "fields": fields(), "cpu": 7,
                "cut": ["str", "debug"], "fields_left_out": true,
            }),
        ),
        ("record", &inner, json!({"fields": {"n": 7}})),
        ("exit", &outer, json!({})),
        ("close", &inner, json!({})),
        ("exit", &inner, json!({})),
        ("enter", &inner, json!({})),
        ("event", &event, json!({})),
    ];
    let out = dumped(&recorder, Format::JsonLines);
    let mut lines = out.lines().map(read);
    let records = all(threads).into_iter().zip(ids(&recorder));
    for (time, ((record, id), (kind, subject, more))) in (1..).zip(records.zip(kinds)) {
        let mut expected = subject.as_object().expect("an object").clone();
        expected.extend(more.as_object().expect("an object").clone());
        let (time, thread) = (time_of(time), record.2);
        let mut add = |name: &str, value: Json| expected.insert(name.to_owned(), value);
        add("time", time.into());
        add("thread", thread.into());
        add("kind", kind.into());
        id.map(|id| add("id", id.into()));
        if thread == threads.worker {
            add("thread_name", "work\ner".into());
            threads.system.map(|number| add("tid", number.into()));
        }
        assert_eq!(lines.next(), Some(Json::Object(expected)));
    }
    let last = json!({
        "kind": "dump", "records": 12, "lost": 0, "damaged": 0, "process": std::process::id(),
        "started_at": started_at(&recorder),
    });
    assert_eq!((lines.next(), lines.next()), (Some(read(&last.to_string())), None));
}

/// When outer is exited, inner is ended and begun again. An exit without an entry is an instant.
/// Closing inner on another thread ends its slice and removes its values.
#[test]
fn the_trace_event_format_has_slices_instants_and_threads() {
    let threads = Threads::new();
    let recorder = recorded(&all(threads));
    let (process, ids, w, o) = (std::process::id(), ids(&recorder), threads.worker, threads.other);
    let time = |record| time_of(record) as f64 / 1000.0;
    let begin = |at, name, args: Json| {
        json!({"ph": "B", "pid": process, "tid": w, "ts": time(at), "name": name, "cat": "near",
               "args": args})
    };
    let end = |at| json!({"ph": "E", "pid": process, "tid": w, "ts": time(at)});
    let instant = |at, thread, name, (cat, level), more: Json| {
        let mut args = json!({
            "level": level, "cpu": null, "id": ids[at as usize - 1], "span": 2, "other_span": null,
            "fields": {}, "cut": [], "fields_left_out": false,
        });
        let args_of = args.as_object_mut().expect("an object");
        args_of.extend(more.as_object().expect("an object").clone());
        json!({"ph": "i", "s": "t", "pid": process, "tid": thread, "ts": time(at), "name": name,
               "cat": cat, "args": args})
    };
    let thread = |tid, name: String| json!({"ph": "M", "pid": process, "tid": tid, "name": "thread_name", "args": {"name": name}});
    let inner = ("near", "INFO");
    let event = ("far\taway", "WARN");
    let system = threads.system.map_or(String::new(), |number| format!(" ({number})"));
    let expected = json!({
        "traceEvents": [
            instant(3, w, "follows from: inner", inner, json!({"other_span": 1})),
            begin(4, "outer", json!({"span": 1})),
            begin(5, "inner", json!({"span": 2, "n": 2})),
            instant(6, w, "so \"it\" is\n", event, json!({
                "cpu": 7, "span": null, "other_span": 2, "fields": fields(), "cut": ["str", "debug"],
                "fields_left_out": true,
            })),
            instant(7, w, "record inner", inner, json!({"fields": {"n": 7}})),
            end(8),
            end(8),
            begin(8, "inner", json!({"span": 2, "n": 7})),
            end(9),
            instant(10, w, "exit inner", inner, json!({})),
            begin(11, "inner", json!({"span": 2})),
            instant(12, o, "event", event, json!({"span": null})),
            thread(w, format!("work\ner{system}")),
            thread(o, format!("thread {o}")),
        ],
        "displayTimeUnit": "ns",
        "otherData": {
            "records": 12, "lost": 0, "damaged": 0, "started_at": started_at(&recorder),
        },
    });
    assert_eq!(read(&dumped(&recorder, Format::Chrome)), read(&expected.to_string()));
}

#[test]
fn a_callsite_has_its_number_before_its_first_event() {
    let (layer, recorder) = FlightRecorder::builder().build();
    let callsites = &recorder.recording().callsites;
    let is_known = || (0..1024).any(|number| callsites.get(number).is_some());
    assert!(!is_known());
    assert!(Layer::<Registry>::register_callsite(&layer, &EVENT).is_always() && is_known());
}

/// Fails at one of its writes.
struct Fails(usize);

impl io::Write for Fails {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn wherever_a_writer_fails_its_error_is_returned() {
    let recorder = recorded(&all(Threads::new()));
    let snapshot = RecorderSnapshot::take(recorder.recording());
    for format in [Format::Text, Format::JsonLines, Format::Chrome] {
        let write = |writes| format::write(format, &snapshot, &mut Fails(writes));
        let failing = (0..).map_while(|writes| write(writes).err());
        let kinds: Vec<_> = failing.take(10_000).map(|error| error.kind()).collect();
        assert!((50..10_000).contains(&kinds.len()), "{format:?}: {}", kinds.len());
        assert!(kinds.iter().all(|kind| *kind == io::ErrorKind::StorageFull), "{format:?}");
    }
}
