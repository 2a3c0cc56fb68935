//! From rows to events.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type};

use super::columns::{Numbers, Words, numbers};
use super::schema::{Column, Kind, SHARES};
use crate::error::Error;
use crate::event::{Event, Shares, State, UNKNOWN, What};
use crate::interner::{Interner, Text};

/// The longest text, in bytes. The list of every other one of 8192 CPUs has half of it.
const LONGEST: usize = 1 << 16;

/// The most that all different texts of a file may have together, in bytes.
const MOST_TEXT: usize = 64 << 20;

/// Some rows.
pub(super) struct Rows {
    /// The number of the first one in the file.
    first: u64,
    len: usize,
    time: Numbers<i64>,
    cpu: Numbers<u32>,
    event: Words,
    kinds: Vec<Option<Kind>>,
    thread: Numbers<u32>,
    prev_thread: Numbers<u32>,
    prev_state: Words,
    states: Vec<Option<State>>,
    parent: Numbers<u32>,
    process: Numbers<u32>,
    from_cpu: Numbers<u32>,
    to_cpu: Numbers<u32>,
    node: Numbers<u32>,
    id: Numbers<u32>,
    shares: Words,
    shared: Vec<Option<Shares>>,
    cpus: Words,
    name: Words,
}

impl Rows {
    /// The rows of a batch, in which a column stands at `place(column)`.
    pub(super) fn new(
        batch: &RecordBatch,
        place: impl Fn(Column) -> usize,
        first: u64,
    ) -> Result<Rows, Error> {
        let array = |column| batch.column(place(column)).as_ref();
        let number = |column| numbers::<UInt32Type>(array(column), column, first);
        let event = Words::new(array(Column::Event));
        let prev_state = Words::new(array(Column::PrevState));
        let shares = Words::new(array(Column::Shares));
        Ok(Rows {
            first,
            len: batch.num_rows(),
            time: numbers::<Int64Type>(array(Column::Time), Column::Time, first)?,
            cpu: number(Column::Cpu)?,
            kinds: event.meanings(Kind::from_word),
            event,
            thread: number(Column::Thread)?,
            prev_thread: number(Column::PrevThread)?,
            states: prev_state.meanings(|word| word.parse().ok()),
            prev_state,
            parent: number(Column::Parent)?,
            process: number(Column::Process)?,
            from_cpu: number(Column::FromCpu)?,
            to_cpu: number(Column::ToCpu)?,
            node: number(Column::Node)?,
            id: number(Column::Id)?,
            shared: shares.meanings(shares_of),
            shares,
            cpus: Words::new(array(Column::Cpus)),
            name: Words::new(array(Column::Name)),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The event in a row; its text, if it has one, is kept in `texts`.
    #[inline]
    pub(super) fn event(&self, row: usize, texts: &mut Interner) -> Result<Event, Error> {
        let time = self.need(self.time.get(row), Column::Time, row)?;
        let time = u64::try_from(time).map_err(|_| self.wrong(row, "`time_ns` is negative"))?;
        let cpu = self.need(self.cpu.get(row), Column::Cpu, row)?;
        Ok(Event { time, cpu, what: self.what(row, texts)? })
    }

    #[inline]
    fn what(&self, row: usize, texts: &mut Interner) -> Result<What, Error> {
        let thread = self.need(self.thread.get(row), Column::Thread, row)?;
        let number = |column: &Numbers<u32>, which| self.need(column.get(row), which, row);
        Ok(match self.kind(row)? {
            Kind::Switch => What::Switch {
                prev: self.prev_thread.get(row).unwrap_or(UNKNOWN),
                state: self.state(row)?,
                next: thread,
            },
            Kind::Wakeup(stage) => {
                What::Wakeup { thread, target: number(&self.to_cpu, Column::ToCpu)?, stage }
            }
            Kind::Migrate => What::Migrate {
                thread,
                from: number(&self.from_cpu, Column::FromCpu)?,
                to: number(&self.to_cpu, Column::ToCpu)?,
            },
            Kind::Fork => What::Fork {
                parent: self.parent.get(row).unwrap_or(UNKNOWN),
                child: thread,
                shares: self.shares(row)?,
            },
            Kind::Exec => What::Exec { thread, old: self.prev_thread.get(row).unwrap_or(UNKNOWN) },
            Kind::Exit => What::Exit { thread },
            Kind::Affinity => {
                What::Affinity { thread, cpus: self.text(&self.cpus, Column::Cpus, row, texts)? }
            }
            Kind::Id => What::Id {
                thread,
                node: number(&self.node, Column::Node)?,
                id: number(&self.id, Column::Id)?,
            },
            Kind::Tick => What::Tick { thread },
            Kind::Member => {
                What::Member { thread, process: self.process.get(row).unwrap_or(UNKNOWN) }
            }
            Kind::Name => {
                What::Name { thread, name: self.text(&self.name, Column::Name, row, texts)? }
            }
        })
    }

    #[inline]
    fn kind(&self, row: usize) -> Result<Kind, Error> {
        let key = self.need(self.event.key(row), Column::Event, row)?;
        let kind = self.kinds.get(key).copied().flatten();
        kind.ok_or_else(|| self.unknown(&self.event, Column::Event, row))
    }

    #[inline]
    fn state(&self, row: usize) -> Result<State, Error> {
        let key = self.need(self.prev_state.key(row), Column::PrevState, row)?;
        let state = self.states.get(key).copied().flatten();
        state.ok_or_else(|| self.unknown(&self.prev_state, Column::PrevState, row))
    }

    fn shares(&self, row: usize) -> Result<Shares, Error> {
        let Some(key) = self.shares.key(row) else { return Ok(Shares::Unknown) };
        let shares = self.shared.get(key).copied().flatten();
        shares.ok_or_else(|| self.unknown(&self.shares, Column::Shares, row))
    }

    fn text(
        &self,
        words: &Words,
        column: Column,
        row: usize,
        texts: &mut Interner,
    ) -> Result<Text, Error> {
        let text = self.need(words.get(row), column, row)?;
        if text.len() > LONGEST {
            let name = column.name();
            return Err(self.wrong(row, format!("`{name}` is longer than {LONGEST} bytes")));
        }
        if texts.bytes() > MOST_TEXT {
            return Err(self.wrong(row, "all texts together are too long"));
        }
        Ok(texts.intern(text.as_bytes()))
    }

    /// The value of a column that this event has.
    #[inline]
    fn need<T>(&self, value: Option<T>, column: Column, row: usize) -> Result<T, Error> {
        value.ok_or_else(|| self.missing(column, row))
    }

    #[cold]
    fn missing(&self, column: Column, row: usize) -> Error {
        let event = self.event.get(row).unwrap_or("null");
        let column = column.name();
        self.wrong(row, format!("`{column}` is null, which an event `{event}` needs"))
    }

    #[cold]
    fn unknown(&self, words: &Words, column: Column, row: usize) -> Error {
        let word: String = words.get(row).unwrap_or_default().chars().take(40).collect();
        self.wrong(row, format!("`{}` has an unknown word: {word:?}", column.name()))
    }

    #[cold]
    fn wrong(&self, row: usize, what: impl Into<String>) -> Error {
        Error::at_row(self.first + row as u64, what)
    }
}

fn shares_of(word: &str) -> Option<Shares> {
    SHARES.iter().find(|(_, known)| *known == word).map(|&(shares, _)| shares)
}
