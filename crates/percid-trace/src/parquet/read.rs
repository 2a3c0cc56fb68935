//! Reading of a file into a trace.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::ChunkReader;
use arrow_schema::{DataType, Field, Schema};

use super::byte_order::supported;
use super::columns::{expected, readable};
use super::events::{DecodedRow, Rows};
use super::plausible::{check_description, check_pages, most_rows};
use super::schema::{Column, SCHEMA, VERSION, words};
use crate::counters::Counted;
use crate::error::Error;
use crate::event::{Cpu, Event};
use crate::filtered;
use crate::interner::Interner;
use crate::numa;
use crate::origin_pairs::{self, from_pairs, number};
use crate::trace::{Origin, Trace};

/// Rows that are turned into events at once.
const BATCH: usize = 1 << 14;

/// Reads a trace from a Parquet file.
///
/// Costs 32 bytes of memory an event, and some megabytes for decoding. An error contains the wrong
/// row or column and what was expected, or the byte at which the file is damaged.
pub fn read(file: File) -> Result<Trace, Error> {
    supported()?;
    without_panic(|| read_chunks(file))
}

/// Reads a trace from a Parquet file in memory.
pub fn read_bytes(file: impl Into<::bytes::Bytes>) -> Result<Trace, Error> {
    supported()?;
    let file = file.into();
    without_panic(|| read_chunks(file))
}

/// Reads a file, and converts panics into errors. The library that decodes Parquet checks most of
/// what it reads, but panics at some damage. A panic can only leave the values inconsistent that
/// `read` builds, and these are dropped.
fn without_panic(read: impl FnOnce() -> Result<Trace, Error>) -> Result<Trace, Error> {
    let panicked = |_| Err(Error::in_file("the Parquet file is damaged: its pages contradict it"));
    let before = CATCHES.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    CATCHES.set(before);
    read.unwrap_or_else(panicked)
}

thread_local! {
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if the calling thread is reading a Parquet file, so that a panic becomes an
/// error. A program's panic hook can then stay silent.
pub fn catches_panics() -> bool {
    CATCHES.get()
}

fn read_chunks(file: impl ChunkReader + 'static) -> Result<Trace, Error> {
    let size = file.len();
    check_description(&file)?;
    let (description, places) = describe(&file)?;
    let origin = origin(description.metadata())?;
    let may_be_filtered = origin_pairs::may_be_filtered(|key| text(description.metadata(), key));
    let mut reading = Reading::new(description.metadata(), most_rows(size), origin)?;
    let mask = ProjectionMask::roots(description.parquet_schema(), places.in_file);
    check_pages(&file, description.metadata(), &mask)?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, description);
    let batches = builder.with_projection(mask).with_batch_size(BATCH).build();
    for batch in batches.map_err(damaged)? {
        let batch = batch.map_err(damaged)?;
        let place = |column: Column| places.in_batch[column as usize];
        reading.take(&Rows::new(&batch, place, reading.rows)?)?;
    }
    let mut trace = reading.finish()?;
    trace.origin.coverage.filtered |= may_be_filtered && filtered::shows(&trace.events);
    Ok(trace)
}

fn damaged(error: impl std::fmt::Display) -> Error {
    Error::in_file(format!("the Parquet file is damaged: {error}"))
}

/// The places of our columns.
struct Places {
    /// Their places in the file, ascending.
    in_file: Vec<usize>,
    /// The place of each of [`Column::ALL`] in a batch of what is read, if it is in the file.
    in_batch: Vec<Option<usize>>,
}

/// Reads the description of the file, with words to be read as words that are kept once.
fn describe(file: &impl ChunkReader) -> Result<(ArrowReaderMetadata, Places), Error> {
    // Skip Arrow's own metadata: it goes beyond Parquet's types, does not matter here, and differs
    // from writer to writer.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let found = ArrowReaderMetadata::load(file, options.clone()).map_err(damaged)?;
    let places = places(found.schema())?;
    let as_words = |field: &Arc<Field>| {
        let ours = Column::ALL.iter().any(|column| column.name() == field.name());
        match field.data_type() {
            DataType::Utf8 if ours => Field::new(field.name(), words(), field.is_nullable()).into(),
            _ => field.clone(),
        }
    };
    let fields: Vec<Arc<Field>> = found.schema().fields().iter().map(as_words).collect();
    let schema = Arc::new(Schema::new(fields));
    let metadata = found.metadata().clone();
    let described = ArrowReaderMetadata::try_new(metadata, options.with_schema(schema));
    Ok((described.map_err(damaged)?, places))
}

fn places(schema: &Schema) -> Result<Places, Error> {
    let mut in_file = Vec::new();
    let mut found_at = Vec::new();
    for column in Column::ALL {
        let (name, expected) = (column.name(), expected(column));
        let Some((place, field)) = schema.column_with_name(name) else {
            if column.may_lack() {
                found_at.push(None);
                continue;
            }
            let what = format!("the column `{name}` is missing, {expected} expected");
            return Err(Error::in_file(what));
        };
        if !readable(column, field.data_type()) {
            let found = field.data_type();
            let what = format!("the column `{name}` has the type {found}, {expected} expected");
            return Err(Error::in_file(what));
        }
        in_file.push(place);
        found_at.push(Some(place));
    }
    let before = |place: usize| in_file.iter().filter(|&&other| other < place).count();
    let in_batch = found_at.iter().map(|place| place.map(before)).collect();
    in_file.sort_unstable();
    Ok(Places { in_file, in_batch })
}

fn text(metadata: &ParquetMetaData, key: &str) -> Option<String> {
    let mut pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    pairs.find(|pair| pair.key == key).and_then(|pair| pair.value.clone())
}

/// Returns the origin of the trace, if the file contains it.
fn origin(metadata: &ParquetMetaData) -> Result<Origin, Error> {
    let text = |key: &str| text(metadata, key);
    let version = number::<u32>(SCHEMA, text(SCHEMA))?;
    if version.is_some_and(|version| version > VERSION) {
        let version = version.unwrap_or_default();
        let what =
            format!("the trace has schema {version}; this program knows {VERSION} and older");
        return Err(Error::in_file(what));
    }
    from_pairs(text)
}

/// Events as they come.
struct Reading {
    events: Vec<Event>,
    numa: Vec<numa::Event>,
    counted: Vec<Counted>,
    rows: u64,
    origin: Origin,
    texts: Interner,
    most: u64,
    /// `true` if the events so far are in the order of a trace.
    sorted: bool,
}

impl Reading {
    fn new(metadata: &ParquetMetaData, most: u64, origin: Origin) -> Result<Reading, Error> {
        let declared = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(u64::MAX);
        if declared > most {
            return Err(too_many(most));
        }
        let events = Vec::with_capacity(declared as usize);
        let (numa, counted, texts) = (Vec::new(), Vec::new(), Interner::default());
        Ok(Reading { events, numa, counted, rows: 0, origin, texts, most, sorted: true })
    }

    fn take(&mut self, rows: &Rows) -> Result<(), Error> {
        self.rows += rows.len() as u64;
        if self.rows > self.most {
            return Err(too_many(self.most));
        }
        let mut last = self.events.last().map_or((0, 0), order);
        for row in 0..rows.len() {
            let event = match rows.entry(row, &mut self.texts, &mut self.origin.counters)? {
                DecodedRow::Schedule(event) => event,
                DecodedRow::Numa(event) => {
                    self.numa.push(event);
                    continue;
                }
                DecodedRow::Count(turn, place, count) => {
                    self.count(turn, place, count);
                    continue;
                }
            };
            let this = order(&event);
            self.sorted &= last <= this;
            last = this;
            self.events.push(event);
        }
        Ok(())
    }

    /// Adds the value of one counter in a turn. The counters of a turn usually are in successive
    /// rows.
    fn count(&mut self, mut turn: Counted, place: usize, count: u64) {
        turn.counts[place] = count;
        match self.counted.last_mut() {
            Some(last) if is_same_turn(last, &turn) => add_counts(last, &turn),
            _ => self.counted.push(turn),
        }
    }

    fn finish(mut self) -> Result<Trace, Error> {
        if !self.sorted {
            check_cpus(&self.events)?;
            self.events.sort_by_key(order);
        }
        self.numa.sort_by_key(|event| (event.time, event.cpu));
        self.counted.sort_by_key(|turn| (turn.time, turn.cpu));
        // Rows that were sorted by counters have their turns torn apart.
        self.counted.dedup_by(|turn, before| {
            let is_same = is_same_turn(before, turn);
            if is_same {
                add_counts(before, turn);
            }
            is_same
        });
        let Reading { origin, events, numa, counted, texts, .. } = self;
        Ok(Trace { origin, events, numa, counted, texts })
    }
}

fn is_same_turn(a: &Counted, b: &Counted) -> bool {
    (a.time, a.cpu, a.thread, a.ran) == (b.time, b.cpu, b.thread, b.ran)
}

/// Adds the counts of other counters of the same turn.
fn add_counts(to: &mut Counted, more: &Counted) {
    for (count, more) in to.counts.iter_mut().zip(more.counts) {
        *count = count.saturating_add(more);
    }
}

fn too_many(most: u64) -> Error {
    Error::in_file(format!("a file of this size cannot have more than {most} rows"))
}

/// The order of the events of a trace.
fn order(event: &Event) -> (u64, Cpu) {
    (event.time, event.cpu)
}

/// Checks that the times of each CPU do not go back.
fn check_cpus(events: &[Event]) -> Result<(), Error> {
    let mut last: HashMap<Cpu, u64> = HashMap::new();
    for (event, row) in events.iter().zip(0..) {
        let Event { time, cpu, .. } = *event;
        let before = last.insert(cpu, time).unwrap_or(0);
        if before > time {
            let what = format!("the time of CPU {cpu} goes back from {before} to {time} ns");
            return Err(Error::at_row(row, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_is_announced_as_one() {
        let read = without_panic(|| {
            assert!(catches_panics());
            panic!("as the library does about some damage");
        });
        assert!(read.expect_err("an error").to_string().contains("damaged"));
        assert!(!catches_panics(), "the next panic is told");
    }
}
