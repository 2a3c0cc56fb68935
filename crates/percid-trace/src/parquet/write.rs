//! Writing of a trace into a file.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow_array::builder::{UInt32Builder, UInt64Builder};
use arrow_schema::SchemaRef;
use percid_rules::scan::{Policy, SkipReason, Traits};

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};

use super::byte_order::supported;
use super::schema::{Column, Kind, Parts, SCHEMA, SHARES, schema};
use crate::counters::Counted;
use crate::error::Error;
use crate::event::{Cpu, Event, Tid, UNKNOWN, What};
use crate::interner::{Interner, Text};
use crate::numa::{self, MIGRATE_REASONS, ThreadMove, words_of_traits};
use crate::origin_pairs::pairs;
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
    let mut writer = Writer::new(to, parts(trace))?;
    writer.write(&happened(trace))?;
    writer.finish(&trace.origin)
}

/// The table that [`write()`] would write, with the types of its columns, in batches of 32,768 rows.
///
/// # Errors
///
/// A time beyond 2^63 - 1 ns.
pub fn batches(trace: &Trace) -> Result<(SchemaRef, Vec<RecordBatch>), Error> {
    let parts = parts(trace);
    let mut entries = Entries::new(&happened(trace));
    let (mut batches, mut rows) = (Vec::new(), 0);
    while let Some(some) = entries.some() {
        batches.push(batch(&trace.texts, &some, rows, parts)?);
        rows += some.len() as u64;
    }
    Ok((schema(parts), batches))
}

fn parts(trace: &Trace) -> Parts {
    Parts { numa: !trace.numa.is_empty(), counted: !trace.counted.is_empty() }
}

fn happened(trace: &Trace) -> Happened<'_> {
    let Trace { origin, events, numa, counted, texts } = trace;
    Happened { events, numa, counted, counters: &origin.counters, texts }
}

/// Writes a trace part by part, at the same cost.
pub(crate) struct Writer<W: Write + Send> {
    writer: ArrowWriter<W>,
    parts: Parts,
    rows: u64,
}

/// The events of a part of a trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Happened<'a> {
    /// The schedule.
    pub(crate) events: &'a [Event],
    /// NUMA balancing.
    pub(crate) numa: &'a [numa::Event],
    /// Counter values.
    pub(crate) counted: &'a [Counted],
    /// The names of the counters.
    pub(crate) counters: &'a [String],
    /// The texts of the events.
    pub(crate) texts: &'a Interner,
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file with these parts.
    pub(crate) fn new(to: W, parts: Parts) -> Result<Writer<W>, Error> {
        supported()?;
        let writer = ArrowWriter::try_new(to, schema(parts), Some(properties()));
        Ok(Writer { writer: writer.map_err(refused)?, parts, rows: 0 })
    }

    /// Writes the next events.
    pub(crate) fn write(&mut self, happened: &Happened<'_>) -> Result<(), Error> {
        let mut entries = Entries::new(happened);
        while let Some(some) = entries.some() {
            let batch = batch(happened.texts, &some, self.rows, self.parts)?;
            self.writer.write(&batch).map_err(refused)?;
            self.rows += some.len() as u64;
        }
        Ok(())
    }

    /// Ends the file, and stores the origin of the trace in it.
    pub(crate) fn finish(mut self, origin: &Origin) -> Result<(), Error> {
        let all = [(SCHEMA, self.parts.version().to_string())].into_iter().chain(pairs(origin));
        for (key, value) in all {
            let pair = KeyValue { key: key.to_owned(), value: Some(value) };
            self.writer.append_key_value_metadata(pair);
        }
        self.writer.close().map_err(refused)?;
        Ok(())
    }
}

/// The content of a row.
enum RowSource<'a> {
    Schedule(&'a Event),
    Numa(&'a numa::Event),
    /// The place of the counter, and its name.
    Count(&'a Counted, usize, &'a str),
}

impl RowSource<'_> {
    fn time(&self) -> u64 {
        match self {
            RowSource::Schedule(event) => event.time,
            RowSource::Numa(event) => event.time,
            RowSource::Count(turn, ..) => turn.time,
        }
    }
}

/// The events of a trace, by time.
struct Entries<'a> {
    events: &'a [Event],
    numa: &'a [numa::Event],
    counted: &'a [Counted],
    counters: &'a [String],
    /// The counter of the first turn that is next.
    counter: usize,
}

impl<'a> Entries<'a> {
    fn new(happened: &Happened<'a>) -> Entries<'a> {
        let &Happened { events, numa, counted, counters, .. } = happened;
        Entries { events, numa, counted, counters, counter: 0 }
    }

    /// Returns the entries of the next batch, if there are any.
    fn some(&mut self) -> Option<Vec<RowSource<'a>>> {
        let some: Vec<RowSource<'a>> = self.by_ref().take(BATCH).collect();
        (!some.is_empty()).then_some(some)
    }

    /// The next counter of the turn that ended first.
    fn count(&mut self) -> Option<RowSource<'a>> {
        let (turn, rest) = self.counted.split_first()?;
        let (place, name) = (self.counter, self.counters.get(self.counter)?);
        self.counter += 1;
        if self.counter == self.counters.len() {
            (self.counted, self.counter) = (rest, 0);
        }
        Some(RowSource::Count(turn, place, name))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = RowSource<'a>;

    fn next(&mut self) -> Option<RowSource<'a>> {
        let next = self.events.first().map(|event| event.time);
        let comes_first = |time: u64| next.is_none_or(|next| time < next);
        if let Some((event, rest)) =
            self.numa.split_first().filter(|(event, _)| comes_first(event.time))
        {
            self.numa = rest;
            return Some(RowSource::Numa(event));
        }
        let is_counted = self.counted.first().is_some_and(|turn| comes_first(turn.time));
        if let Some(entry) = is_counted.then(|| self.count()).flatten() {
            return Some(entry);
        }
        let (event, rest) = self.events.split_first()?;
        self.events = rest;
        Some(RowSource::Schedule(event))
    }
}

/// Converts an error of the library when it cannot write: to the system's error, if it was that.
fn refused(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => Error::Io(*error),
            Err(other) => Error::Io(io::Error::other(other)),
        },
        other => Error::Io(io::Error::other(other)),
    }
}

fn properties() -> WriterProperties {
    let time = ColumnPath::from(Column::Time.name());
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Every time is new, but close to the one before.
        .set_column_dictionary_enabled(time.clone(), false)
        .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
        .set_created_by(concat!("percid-trace version ", env!("CARGO_PKG_VERSION")).to_string())
        .build()
}

/// The columns of some events, the first of which is in the row `first`.
fn batch(
    texts: &Interner,
    entries: &[RowSource<'_>],
    first: u64,
    parts: Parts,
) -> Result<RecordBatch, Error> {
    let mut times = Vec::with_capacity(entries.len());
    let mut rows = Rows::default();
    for (entry, row) in entries.iter().zip(first..) {
        let too_late = |_| Error::at_row(row, "the time is beyond 2^63 - 1 ns");
        times.push(i64::try_from(entry.time()).map_err(too_late)?);
        match entry {
            RowSource::Schedule(event) => {
                let (thread, row) = row_of(&event.what);
                rows.push(event.cpu, Kind::from_what(&event.what), thread, row, texts);
            }
            RowSource::Numa(event) => {
                let (kind, row) = (Kind::Numa(event.what.kind()), row_of_numa(&event.what));
                rows.push(event.cpu, kind, event.thread, row, texts);
            }
            &RowSource::Count(turn, place, name) => {
                rows.push(
                    turn.cpu,
                    Kind::Count,
                    turn.thread,
                    row_of_count(turn, place, name),
                    texts,
                );
            }
        }
    }
    let columns = rows.finish(times, parts);
    RecordBatch::try_new(schema(parts), columns).map_err(|error| Error::Io(io::Error::other(error)))
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
    start: UInt64Builder,
    end: UInt64Builder,
    offset: UInt64Builder,
    pages: UInt64Builder,
    failed: UInt64Builder,
    ticks: UInt64Builder,
    took: UInt64Builder,
    threads: UInt32Builder,
    from_node: UInt32Builder,
    to_node: UInt32Builder,
    reason: Words,
    traits: Words,
    counter: Words,
    count: UInt64Builder,
    ran: UInt64Builder,
    uncounted: UInt64Builder,
}

/// The values of one event in the columns that not every event has.
#[derive(Default)]
struct RareColumns<'a> {
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
    start: Option<u64>,
    end: Option<u64>,
    offset: Option<u64>,
    pages: Option<u64>,
    failed: Option<u64>,
    ticks: Option<u64>,
    took: Option<u64>,
    threads: Option<u32>,
    from_node: Option<u32>,
    to_node: Option<u32>,
    reason: Option<&'static str>,
    traits: Option<Traits>,
    counter: Option<(usize, &'a str)>,
    count: Option<u64>,
    ran: Option<u64>,
    uncounted: Option<u64>,
}

impl Rows {
    fn push(&mut self, cpu: Cpu, kind: Kind, thread: Tid, row: RareColumns<'_>, texts: &Interner) {
        self.cpu.append_value(cpu);
        self.event.push(Some(kind.place() as u32), || kind.word().to_string());
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
        self.cpus.push_text(row.cpus, texts);
        self.name.push_text(row.name, texts);
        let place = row.counter.map(|(place, _)| place as u32);
        self.counter.push(place, || row.counter.map_or("", |(_, name)| name).to_owned());
        self.count.append_option(row.count);
        self.ran.append_option(row.ran);
        self.uncounted.append_option(row.uncounted);
        self.push_numa(row);
    }

    fn push_numa(&mut self, row: RareColumns<'_>) {
        self.start.append_option(row.start);
        self.end.append_option(row.end);
        self.offset.append_option(row.offset);
        self.pages.append_option(row.pages);
        self.failed.append_option(row.failed);
        self.ticks.append_option(row.ticks);
        self.took.append_option(row.took);
        self.threads.append_option(row.threads);
        self.from_node.append_option(row.from_node);
        self.to_node.append_option(row.to_node);
        self.reason.push(row.reason.map(number_of_reason), || row.reason.unwrap_or("").to_owned());
        let bits = row.traits.map(number_of_traits);
        self.traits.push(bits, || row.traits.map_or_else(String::new, words_of_traits));
    }

    fn finish(mut self, times: Vec<i64>, parts: Parts) -> Vec<ArrayRef> {
        let numbers = |builder: &mut UInt32Builder| -> ArrayRef { Arc::new(builder.finish()) };
        let large = |builder: &mut UInt64Builder| -> ArrayRef { Arc::new(builder.finish()) };
        let mut columns = vec![
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
        ];
        if parts.numa {
            columns.extend([
                large(&mut self.start),
                large(&mut self.end),
                large(&mut self.offset),
                large(&mut self.pages),
                large(&mut self.failed),
                large(&mut self.ticks),
                numbers(&mut self.threads),
                numbers(&mut self.from_node),
                numbers(&mut self.to_node),
                self.reason.finish(),
                self.traits.finish(),
                large(&mut self.took),
            ]);
        }
        if parts.counted {
            columns.extend([
                self.counter.finish(),
                large(&mut self.count),
                large(&mut self.ran),
                large(&mut self.uncounted),
            ]);
        }
        columns
    }
}

/// The thread of an event, and its other values.
fn row_of(what: &What) -> (Tid, RareColumns<'static>) {
    let known = |thread: Tid| Some(thread).filter(|&thread| thread != UNKNOWN);
    let none = RareColumns::default();
    match *what {
        What::Switch { prev, state, next } => {
            (next, RareColumns { prev_thread: known(prev), prev_state: Some(state.0), ..none })
        }
        What::Wakeup { thread, target, .. } => {
            (thread, RareColumns { to_cpu: Some(target), ..none })
        }
        What::Migrate { thread, from, to } => {
            (thread, RareColumns { from_cpu: Some(from), to_cpu: Some(to), ..none })
        }
        What::Fork { parent, child, shares } => {
            let shares = SHARES.iter().position(|&(known, _)| known == shares);
            let shares = shares.map(|place| place as u32);
            (child, RareColumns { parent: known(parent), shares, ..none })
        }
        What::Exec { thread, old } => (thread, RareColumns { prev_thread: known(old), ..none }),
        What::Exit { thread } | What::Tick { thread } => (thread, none),
        What::Affinity { thread, cpus } => (thread, RareColumns { cpus: Some(cpus), ..none }),
        What::Id { thread, node, id } => {
            (thread, RareColumns { node: Some(node), id: Some(id), ..none })
        }
        What::Member { thread, process } => {
            (thread, RareColumns { process: known(process), ..none })
        }
        What::Name { thread, name } => (thread, RareColumns { name: Some(name), ..none }),
    }
}

/// The values of an event of NUMA balancing.
fn row_of_numa(what: &numa::What) -> RareColumns<'static> {
    let none = RareColumns::default();
    let known = |thread: Tid| Some(thread).filter(|&thread| thread != UNKNOWN);
    match *what {
        numa::What::Pass { ticks, took } => RareColumns { ticks: Some(ticks), took, ..none },
        numa::What::Skip { offset, start, end, reason } => RareColumns {
            offset: Some(offset),
            start: Some(start),
            end: Some(end),
            reason: reason.map(|reason| reason.name()),
            ..none
        },
        numa::What::Arm { start, end, changed } => {
            RareColumns { start: Some(start), end: Some(end), pages: changed, ..none }
        }
        numa::What::Hint { address, took, node } => {
            RareColumns { start: Some(address), took, to_node: node, ..none }
        }
        numa::What::Process { process, threads } => {
            RareColumns { process: known(process), threads: Some(threads), ..none }
        }
        numa::What::Region { process, start, end, traits } => RareColumns {
            process: known(process),
            start: Some(start),
            end: Some(end),
            traits: Some(traits),
            ..none
        },
        numa::What::Move(place) | numa::What::Stick(place) => row_of_place(place),
        numa::What::Swap(place, other) => {
            RareColumns { prev_thread: known(other), ..row_of_place(place) }
        }
        numa::What::MigrateStart { reason } => RareColumns { reason: Some(reason.word()), ..none },
        numa::What::Migrated { moved, failed, reason } => RareColumns {
            pages: Some(moved),
            failed: Some(failed),
            reason: Some(reason.word()),
            ..none
        },
    }
}

/// The values of one counter in a turn.
fn row_of_count<'a>(turn: &Counted, place: usize, name: &'a str) -> RareColumns<'a> {
    RareColumns {
        counter: Some((place, name)),
        count: turn.counts.get(place).copied(),
        ran: Some(turn.ran),
        uncounted: Some(turn.uncounted),
        ..RareColumns::default()
    }
}

fn row_of_place(place: ThreadMove) -> RareColumns<'static> {
    RareColumns {
        from_cpu: Some(place.from_cpu),
        from_node: Some(place.from_node),
        to_cpu: Some(place.to_cpu),
        to_node: Some(place.to_node),
        ..RareColumns::default()
    }
}

/// A number for each word that can be a reason.
fn number_of_reason(word: &'static str) -> u32 {
    let skips = SkipReason::ALL.len();
    let skip = SkipReason::ALL.into_iter().position(|reason| reason.name() == word);
    let migration = MIGRATE_REASONS.iter().position(|&known| known == word);
    skip.or(migration.map(|place| skips + place)).unwrap_or(usize::from(u16::MAX)) as u32
}

/// A number for each set of traits.
fn number_of_traits(traits: Traits) -> u32 {
    let Traits { movable, policy, file, readable, writable, executable } = traits;
    let policy = match policy {
        None => 0,
        Some(Policy::Balancing) => 1,
        Some(Policy::Fixed) => 2,
    };
    let bits = [movable, file, readable, writable, executable];
    bits.into_iter().fold(policy, |number, bit| number * 2 + u32::from(bit))
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

    fn push_text(&mut self, text: Option<Text>, texts: &Interner) {
        let spell = || text.map_or(String::new(), |text| texts.get(text).to_string());
        self.push(text.map(|text| text.0), spell);
    }

    fn finish(self) -> ArrayRef {
        let words = StringArray::from_iter_values(self.words);
        Arc::new(DictionaryArray::new(Int32Array::from(self.keys), Arc::new(words)))
    }
}
