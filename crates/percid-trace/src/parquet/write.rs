//! From a trace to a file.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow_array::builder::UInt32Builder;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};

use super::byte_order::supported;
use super::schema::{Column, KINDS, Kind, SHARES, VERSION, key, schema};
use crate::error::Error;
use crate::event::{Event, Tid, UNKNOWN, What};
use crate::interner::Text;
use crate::trace::{Origin, Trace};

/// Rows of a row group, which readers read or leave out as a whole.
const ROW_GROUP: usize = 1 << 20;

/// Rows that are turned into columns at once.
const BATCH: usize = 1 << 15;

/// Writes a trace as a Parquet file.
///
/// Costs about as much memory as one row group of a million events takes in the file. A time beyond
/// 2^63 - 1 ns, which no clock of the kernel reaches, is an error that names the event's row.
pub fn write(trace: &Trace, to: impl Write + Send) -> Result<(), Error> {
    supported()?;
    let properties = properties(&trace.origin);
    let mut writer = ArrowWriter::try_new(to, schema(), Some(properties)).map_err(refused)?;
    for (nth, events) in trace.events.chunks(BATCH).enumerate() {
        let batch = batch(trace, events, (nth * BATCH) as u64)?;
        writer.write(&batch).map_err(refused)?;
    }
    writer.close().map_err(refused)?;
    Ok(())
}

/// What the library says when it cannot write: the reason of the system, if it was that.
fn refused(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => Error::Io(*error),
            Err(other) => Error::Io(io::Error::other(other)),
        },
        other => Error::Io(io::Error::other(other)),
    }
}

fn properties(origin: &Origin) -> WriterProperties {
    let time = ColumnPath::from(Column::Time.name());
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Every time is new, but close to the one before.
        .set_column_dictionary_enabled(time.clone(), false)
        .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
        .set_key_value_metadata(Some(metadata(origin)))
        .set_created_by(concat!("percid-trace version ", env!("CARGO_PKG_VERSION")).to_string())
        .build()
}

fn metadata(origin: &Origin) -> Vec<KeyValue> {
    let Origin { release, clock, possible_cpus, online_cpus, lost, command } = origin;
    let pairs = [
        (key::SCHEMA, Some(VERSION.to_string())),
        (key::RELEASE, release.clone()),
        (key::CLOCK, clock.clone()),
        (key::POSSIBLE_CPUS, possible_cpus.map(|cpus| cpus.to_string())),
        (key::ONLINE_CPUS, online_cpus.map(|cpus| cpus.to_string())),
        (key::LOST, Some(lost.to_string())),
        (key::COMMAND, command.clone()),
    ];
    let said = pairs.into_iter().filter(|(_, value)| value.is_some());
    said.map(|(key, value)| KeyValue { key: key.to_string(), value }).collect()
}

/// The columns of some events, the first of which is in the row `first`.
fn batch(trace: &Trace, events: &[Event], first: u64) -> Result<RecordBatch, Error> {
    let mut times = Vec::with_capacity(events.len());
    let mut rows = Rows::default();
    for (event, row) in events.iter().zip(first..) {
        let too_late = |_| Error::at_row(row, "the time is beyond 2^63 - 1 ns");
        times.push(i64::try_from(event.time).map_err(too_late)?);
        rows.push(event, trace);
    }
    let columns = rows.finish(times);
    RecordBatch::try_new(schema(), columns).map_err(|error| Error::Io(io::Error::other(error)))
}

/// Rows, column by column, apart from their times.
#[derive(Default)]
struct Rows {
    cpu: UInt32Builder,
    event: Words,
    thread: UInt32Builder,
    prev_thread: UInt32Builder,
    prev_state: Words,
    parent: UInt32Builder,
    process: UInt32Builder,
    from_cpu: UInt32Builder,
    to_cpu: UInt32Builder,
    node: UInt32Builder,
    id: UInt32Builder,
    shares: Words,
    cpus: Words,
    name: Words,
}

/// The values of one event in the columns that not every event has.
#[derive(Default)]
struct Row {
    prev_thread: Option<Tid>,
    prev_state: Option<u32>,
    parent: Option<Tid>,
    process: Option<Tid>,
    from_cpu: Option<u32>,
    to_cpu: Option<u32>,
    node: Option<u32>,
    id: Option<u32>,
    shares: Option<u32>,
    cpus: Option<Text>,
    name: Option<Text>,
}

impl Rows {
    fn push(&mut self, event: &Event, trace: &Trace) {
        let (thread, row) = row(&event.what);
        self.cpu.append_value(event.cpu);
        let kind = Kind::of(&event.what).place();
        self.event.push(Some(kind as u32), || KINDS[kind].1.to_string());
        self.thread.append_value(thread);
        self.prev_thread.append_option(row.prev_thread);
        let state = row.prev_state.unwrap_or_default();
        self.prev_state.push(row.prev_state, || crate::event::State(state).to_string());
        self.parent.append_option(row.parent);
        self.process.append_option(row.process);
        self.from_cpu.append_option(row.from_cpu);
        self.to_cpu.append_option(row.to_cpu);
        self.node.append_option(row.node);
        self.id.append_option(row.id);
        let shares = row.shares.unwrap_or_default();
        self.shares.push(row.shares, || SHARES[shares as usize].1.to_string());
        self.cpus.push_text(row.cpus, trace);
        self.name.push_text(row.name, trace);
    }

    fn finish(mut self, times: Vec<i64>) -> Vec<ArrayRef> {
        let numbers = |builder: &mut UInt32Builder| -> ArrayRef { Arc::new(builder.finish()) };
        vec![
            Arc::new(Int64Array::from(times)),
            numbers(&mut self.cpu),
            self.event.finish(),
            numbers(&mut self.thread),
            numbers(&mut self.prev_thread),
            self.prev_state.finish(),
            numbers(&mut self.parent),
            numbers(&mut self.process),
            numbers(&mut self.from_cpu),
            numbers(&mut self.to_cpu),
            numbers(&mut self.node),
            numbers(&mut self.id),
            self.shares.finish(),
            self.cpus.finish(),
            self.name.finish(),
        ]
    }
}

/// The thread of an event, and its other values.
fn row(what: &What) -> (Tid, Row) {
    let known = |thread: Tid| Some(thread).filter(|&thread| thread != UNKNOWN);
    let none = Row::default();
    match *what {
        What::Switch { prev, state, next } => {
            (next, Row { prev_thread: known(prev), prev_state: Some(state.0), ..none })
        }
        What::Wakeup { thread, target, .. } => (thread, Row { to_cpu: Some(target), ..none }),
        What::Migrate { thread, from, to } => {
            (thread, Row { from_cpu: Some(from), to_cpu: Some(to), ..none })
        }
        What::Fork { parent, child, shares } => {
            let shares = SHARES.iter().position(|&(known, _)| known == shares);
            let shares = shares.map(|place| place as u32);
            (child, Row { parent: known(parent), shares, ..none })
        }
        What::Exec { thread, old } => (thread, Row { prev_thread: known(old), ..none }),
        What::Exit { thread } | What::Tick { thread } => (thread, none),
        What::Affinity { thread, cpus } => (thread, Row { cpus: Some(cpus), ..none }),
        What::Id { thread, node, id } => (thread, Row { node: Some(node), id: Some(id), ..none }),
        What::Member { thread, process } => (thread, Row { process: known(process), ..none }),
        What::Name { thread, name } => (thread, Row { name: Some(name), ..none }),
    }
}

/// A column of words, each of which is kept once.
#[derive(Default)]
struct Words {
    keys: Vec<Option<i32>>,
    words: Vec<String>,
    /// The keys of words by their numbers with us.
    known: HashMap<u32, i32>,
}

impl Words {
    /// Adds the word with this number, or null.
    fn push(&mut self, number: Option<u32>, spell: impl FnOnce() -> String) {
        let key = number.map(|number| {
            *self.known.entry(number).or_insert_with(|| {
                self.words.push(spell());
                self.words.len() as i32 - 1
            })
        });
        self.keys.push(key);
    }

    fn push_text(&mut self, text: Option<Text>, trace: &Trace) {
        let spell = || text.map_or(String::new(), |text| trace.texts.get(text).to_string());
        self.push(text.map(|text| text.0), spell);
    }

    fn finish(self) -> ArrayRef {
        let words = StringArray::from_iter_values(self.words);
        Arc::new(DictionaryArray::new(Int32Array::from(self.keys), Arc::new(words)))
    }
}
