//! Tables as other programs write them after they worked on ours, made here with the columns that
//! they make.

// On big-endian machines Parquet is not supported.
#![cfg(target_endian = "little")]

use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, NullArray, RecordBatch,
    StringArray, UInt64Array,
};
use arrow_schema::{Field, Schema};
use percid_trace::counters::Counted;
use percid_trace::error::{Error, Position};
use percid_trace::event::{Event, State, UNKNOWN, What};
use percid_trace::{Trace, parquet};

type Columns = Vec<(&'static str, ArrayRef)>;

const NONE: [Option<f64>; 3] = [None; 3];

/// Two switches and a name, in the types that pandas makes of our columns.
fn table() -> Columns {
    let text =
        |values: [Option<&str>; 3]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let float =
        |values: [Option<f64>; 3]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let nothing = || -> ArrayRef { Arc::new(NullArray::new(3)) };
    vec![
        ("name", text([None, Some("ü"), None])),
        ("mine", float([Some(0.5), None, None])),
        ("time_ns", Arc::new(UInt64Array::from(vec![1000, 1000, 1 << 62]))),
        ("cpu", Arc::new(Int64Array::from(vec![0, 3, 3]))),
        ("event", text([Some("switch"), Some("name"), Some("switch")])),
        ("thread", Arc::new(Int64Array::from(vec![7, 8, 0]))),
        ("prev_thread", float([None, None, Some(7.0)])),
        ("prev_state", text([Some("R+"), None, Some("D|0x200")])),
        ("parent", float(NONE)),
        ("process", nothing()),
        ("from_cpu", nothing()),
        ("to_cpu", float(NONE)),
        ("node", float(NONE)),
        ("id", float(NONE)),
        ("shares", nothing()),
        ("cpus", nothing()),
    ]
}

fn with(mut columns: Columns, name: &str, values: ArrayRef) -> Columns {
    let column = columns.iter_mut().find(|column| column.0 == name).expect("a column of ours");
    column.1 = values;
    columns
}

fn file(columns: Columns, metadata: &[(&str, &str)]) -> Vec<u8> {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|column| column.1).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).expect("columns of one length");
    let few_pages = WriterProperties::builder().set_data_page_row_count_limit(usize::MAX).build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, schema, Some(few_pages)).expect("a schema");
    writer.write(&batch).expect("memory takes everything");
    for (key, value) in metadata {
        writer.append_key_value_metadata(KeyValue::new(key.to_string(), value.to_string()));
    }
    writer.close().expect("memory takes everything");
    file
}

fn read(columns: Columns) -> Result<Trace, Error> {
    parquet::read_bytes(file(columns, &[]))
}

/// Returns the position and description of a file's error.
fn wrong(read: Result<Trace, Error>) -> (Position, String) {
    match read {
        Err(Error::Malformed(malformed)) => (malformed.at, malformed.what),
        Err(error) => panic!("not malformed: {error}"),
        Ok(trace) => panic!("{} events were read", trace.events.len()),
    }
}

fn row(row: u64, what: &str) -> (Position, String) {
    (Position::Row(row), what.to_string())
}

#[test]
fn any_width_order_and_company_of_columns_is_read() {
    let trace = read(table()).expect("a table");
    let name = trace.events[1];
    let What::Name { thread: 8, name: text } = name.what else { panic!("{name:?}") };
    assert_eq!(trace.texts.get(text), "ü");
    let first = What::Switch { prev: UNKNOWN, state: State::PREEMPTED, next: 7 };
    let last = What::Switch { prev: 7, state: State(0x202), next: 0 };
    assert_eq!(trace.events[0], Event { time: 1000, cpu: 0, what: first });
    assert_eq!(trace.events[2], Event { time: 1 << 62, cpu: 3, what: last });
    assert_eq!(trace.origin, Default::default());
}

#[test]
fn a_missing_column_is_named() {
    for name in ["time_ns", "event", "name", "id"] {
        let mut columns = table();
        columns.retain(|column| column.0 != name);
        let (at, what) = wrong(read(columns));
        assert_eq!(at, Position::File);
        assert!(what.starts_with(&format!("the column `{name}` is missing, ")), "{what}");
    }
}

#[test]
fn a_column_of_another_type_is_named() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["0", "1", "2"]));
    let (at, what) = wrong(read(with(table(), "cpu", text)));
    assert_eq!(at, Position::File);
    assert_eq!(what, "the column `cpu` has the type Utf8, uint32 expected");
    let (_, what) = wrong(read(with(table(), "event", Arc::new(Int64Array::from(vec![0, 1, 2])))));
    assert_eq!(what, "the column `event` has the type Int64, string expected");
    let (_, what) = wrong(read(with(table(), "thread", Arc::new(NullArray::new(3)))));
    assert_eq!(what, "the column `thread` has the type Null, uint32 expected");
}

#[test]
fn a_value_out_of_range_is_found_in_its_row() {
    let cpus = Int64Array::from(vec![0, 3, -1]);
    let found = wrong(read(with(table(), "cpu", Arc::new(cpus))));
    assert_eq!(found, row(2, "`cpu` does not fit into uint32"));
    let threads = Float64Array::from(vec![7.0, 8.5, 0.0]);
    let found = wrong(read(with(table(), "thread", Arc::new(threads))));
    assert_eq!(found, row(1, "`thread` does not fit into uint32"));
    let times = Int64Array::from(vec![-1, 0, 0]);
    let found = wrong(read(with(table(), "time_ns", Arc::new(times))));
    assert_eq!(found, row(0, "`time_ns` is negative"));
}

#[test]
fn a_row_without_what_its_event_needs_is_found() {
    let threads = Int64Array::from(vec![Some(7), Some(8), None]);
    let found = wrong(read(with(table(), "thread", Arc::new(threads))));
    assert_eq!(found, row(2, "`thread` is null, which an event `switch` needs"));
    let names = StringArray::new_null(3);
    let found = wrong(read(with(table(), "name", Arc::new(names))));
    assert_eq!(found, row(1, "`name` is null, which an event `name` needs"));
}

#[test]
fn an_unknown_word_is_found_in_its_row() {
    let events = StringArray::from(vec!["switch", "name", "swotch"]);
    let found = wrong(read(with(table(), "event", Arc::new(events))));
    assert_eq!(found, row(2, "`event` has an unknown word: \"swotch\""));
    let states = StringArray::from(vec!["Q", "", "R"]);
    let found = wrong(read(with(table(), "prev_state", Arc::new(states))));
    assert_eq!(found, row(0, "`prev_state` has an unknown word: \"Q\""));
}

#[test]
fn a_newer_schema_is_refused() {
    let read = |version| parquet::read_bytes(file(table(), &[("percid.schema", version)]));
    assert!(["1", "2", "3"].map(read).iter().all(Result::is_ok));
    let (at, what) = wrong(read("4"));
    assert_eq!(at, Position::File);
    assert_eq!(what, "the trace has schema 4; this program knows 3 and older");
    assert_eq!(wrong(read("one")).1, "the metadata `percid.schema` is not a number");
    let nodes = |list| parquet::read_bytes(file(table(), &[("percid.cpu_nodes", list)]));
    assert_eq!(nodes("0,0,1").expect("a list").origin.nodes, [0, 0, 1]);
    for list in ["", "0,,1", "0-3", "-1"] {
        assert_eq!(wrong(nodes(list)).1, "the metadata `percid.cpu_nodes` is not a number");
    }
}

/// Two turns with two counters each, whose rows somebody sorted by counter, one of them without its last.
fn counted() -> Columns {
    let large = |values: [u64; 3]| -> ArrayRef { Arc::new(UInt64Array::from(values.to_vec())) };
    let text = |values: [&str; 3]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let mut columns = with(table(), "time_ns", large([1000, 1000, 1000]));
    columns = with(columns, "cpu", Arc::new(Int64Array::from(vec![3, 5, 3])));
    columns = with(columns, "event", text(["count"; 3]));
    columns = with(columns, "thread", Arc::new(Int64Array::from(vec![7, 8, 7])));
    columns.extend([
        ("counter", text(["cycles", "cycles", "cache-misses"])),
        ("count", large([u64::MAX, 50, 6])),
        ("ran_ns", large([900, 800, 900])),
        ("uncounted_ns", large([0, 1, 0])),
    ]);
    columns
}

#[test]
fn rows_of_counters_become_turns_in_whatever_order_they_stand() {
    let read = read(counted()).expect("rows of counters");
    assert_eq!(read.origin.counters, ["cycles", "cache-misses"], "as they were met");
    let turn = |cpu, thread, ran, uncounted, [first, second]: [u64; 2]| {
        let counts = [first, second, 0, 0, 0, 0, 0, 0];
        Counted { time: 1000, cpu, thread, ran, uncounted, counts }
    };
    let expected = [turn(3, 7, 900, 0, [u64::MAX, 6]), turn(5, 8, 800, 1, [50, 0])];
    assert_eq!(read.counted, expected);
    let told = parquet::read_bytes(file(counted(), &[("percid.counters", "cache-misses,cycles")]));
    let told = told.expect("rows of counters");
    assert_eq!(told.origin.counters, ["cache-misses", "cycles"], "as the metadata has them");
    assert_eq!(told.counted[0].counts[..2], [6, u64::MAX]);
}

#[test]
fn rows_of_counters_without_what_they_need_say_so() {
    let nothing: ArrayRef = Arc::new(NullArray::new(3));
    for column in ["counter", "count", "ran_ns", "uncounted_ns"] {
        let (at, what) = wrong(read(with(counted(), column, nothing.clone())));
        assert_eq!(at, Position::Row(0));
        assert_eq!(what, format!("`{column}` is null, which an event `count` needs"));
    }
    let eight = "a,b,c,d,e,f,g,h";
    let (_, what) = wrong(parquet::read_bytes(file(counted(), &[("percid.counters", eight)])));
    assert_eq!(what, "expected at most 8 different counters");
    let nine = format!("{eight},i");
    let (_, what) = wrong(parquet::read_bytes(file(table(), &[("percid.counters", &nine)])));
    assert_eq!(what, "the metadata `percid.counters` has 9 names, expected at most 8");
}

/// A million rows of one tick and more take a few kilobytes: an attack, not a trace.
#[test]
fn more_rows_than_a_file_of_its_size_can_have_are_refused() {
    const ROWS: usize = 3 << 19;
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; ROWS]));
    let tick = StringArray::from(vec!["tick"]);
    let ticks = DictionaryArray::new(Int32Array::from(vec![0; ROWS]), Arc::new(tick));
    let columns = table().into_iter().map(|(name, _)| match name {
        "event" => (name, Arc::new(ticks.clone()) as ArrayRef),
        "time_ns" | "cpu" | "thread" => (name, zeros.clone()),
        _ => (name, Arc::new(NullArray::new(ROWS)) as ArrayRef),
    });
    let (at, what) = wrong(read(columns.collect()));
    assert_eq!(at, Position::File);
    assert!(what.starts_with("a file of this size cannot have more than "), "{what}");
}
