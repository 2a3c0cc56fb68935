//! Conversion of rows to events.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use percid_rules::scan::{SkipReason, Traits};

use super::columns::{Numbers, Words, numbers};
use super::schema::{Column, Kind, SHARES};
use crate::counters::{Counted, MAX_COUNTERS};
use crate::error::Error;
use crate::event::{Event, Shares, State, UNKNOWN, What};
use crate::interner::{Interner, Text};
use crate::numa::{self, MigrateReason, ThreadMove};

/// The longest text, in bytes. The list of every other one of 8192 CPUs has half of it.
const MAX_TEXT_BYTES: usize = 1 << 16;

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
    start: Numbers<u64>,
    end: Numbers<u64>,
    offset: Numbers<u64>,
    pages: Numbers<u64>,
    failed: Numbers<u64>,
    ticks: Numbers<u64>,
    took: Numbers<u64>,
    threads: Numbers<u32>,
    from_node: Numbers<u32>,
    to_node: Numbers<u32>,
    reason: Words,
    skip_reasons: Vec<Option<SkipReason>>,
    migrate_reasons: Vec<Option<MigrateReason>>,
    traits: Words,
    traits_of_words: Vec<Option<Traits>>,
    counter: Words,
    count: Numbers<u64>,
    ran: Numbers<u64>,
    uncounted: Numbers<u64>,
}

/// The content of a row.
pub(super) enum DecodedRow {
    /// An event of the schedule.
    Schedule(Event),
    /// An event of NUMA balancing.
    Numa(numa::Event),
    /// The value of one counter, with its place, in a turn: this turn has no counts yet.
    Count(Counted, usize, u64),
}

impl Rows {
    /// Returns the rows of a batch. A column is at `place(column)`, if it exists.
    pub(super) fn new(
        batch: &RecordBatch,
        place: impl Fn(Column) -> Option<usize>,
        first: u64,
    ) -> Result<Rows, Error> {
        let len = batch.num_rows();
        let array = |column| place(column).map(|place| batch.column(place).as_ref());
        let number = |column| match array(column) {
            Some(array) => numbers::<UInt32Type>(array, column, first),
            None => Ok(Numbers::absent(len)),
        };
        let large = |column| match array(column) {
            Some(array) => numbers::<UInt64Type>(array, column, first),
            None => Ok(Numbers::absent(len)),
        };
        let words = |column| array(column).map_or_else(|| Words::absent(len), Words::new);
        let time = match array(Column::Time) {
            Some(array) => numbers::<Int64Type>(array, Column::Time, first)?,
            None => Numbers::absent(len),
        };
        let event = words(Column::Event);
        let prev_state = words(Column::PrevState);
        let shares = words(Column::Shares);
        let reason = words(Column::Reason);
        let traits = words(Column::Traits);
        Ok(Rows {
            first,
            len,
            time,
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
            cpus: words(Column::Cpus),
            name: words(Column::Name),
            start: large(Column::Start)?,
            end: large(Column::End)?,
            offset: large(Column::Offset)?,
            pages: large(Column::Pages)?,
            failed: large(Column::Failed)?,
            ticks: large(Column::Ticks)?,
            took: large(Column::Took)?,
            threads: number(Column::Threads)?,
            from_node: number(Column::FromNode)?,
            to_node: number(Column::ToNode)?,
            skip_reasons: reason.meanings(numa::skip_reason),
            migrate_reasons: reason.meanings(|word| Some(MigrateReason::from_word(word))),
            reason,
            traits_of_words: traits.meanings(numa::traits_from_words),
            traits,
            counter: words(Column::Counter),
            count: large(Column::Count)?,
            ran: large(Column::Ran)?,
            uncounted: large(Column::Uncounted)?,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The event in a row; its text, if it has one, is kept in `texts`, the name of its counter in
    /// `counters`.
    #[inline]
    pub(super) fn entry(
        &self,
        row: usize,
        texts: &mut Interner,
        counters: &mut Vec<String>,
    ) -> Result<DecodedRow, Error> {
        let time = self.need(self.time.get(row), Column::Time, row)?;
        let time = u64::try_from(time).map_err(|_| self.wrong(row, "`time_ns` is negative"))?;
        let cpu = self.need(self.cpu.get(row), Column::Cpu, row)?;
        let thread = self.need(self.thread.get(row), Column::Thread, row)?;
        let number = |column: &Numbers<u32>, which| self.need(column.get(row), which, row);
        let what = match self.kind(row)? {
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
            Kind::Numa(kind) => {
                let what = self.numa(kind, row)?;
                return Ok(DecodedRow::Numa(numa::Event { time, cpu, thread, what }));
            }
            Kind::Count => {
                let place = self.counter(row, counters)?;
                let large = |column: &Numbers<u64>, which| self.need(column.get(row), which, row);
                let ran = large(&self.ran, Column::Ran)?;
                let uncounted = large(&self.uncounted, Column::Uncounted)?;
                let turn = Counted { time, cpu, thread, ran, uncounted, counts: [0; MAX_COUNTERS] };
                return Ok(DecodedRow::Count(turn, place, large(&self.count, Column::Count)?));
            }
        };
        Ok(DecodedRow::Schedule(Event { time, cpu, what }))
    }

    fn numa(&self, kind: usize, row: usize) -> Result<numa::What, Error> {
        let large = |column: &Numbers<u64>, which| self.need(column.get(row), which, row);
        let number = |column: &Numbers<u32>, which| self.need(column.get(row), which, row);
        let start = || large(&self.start, Column::Start);
        let end = || large(&self.end, Column::End);
        let process = || self.process.get(row).unwrap_or(UNKNOWN);
        Ok(match kind {
            0 => numa::What::Pass {
                ticks: large(&self.ticks, Column::Ticks)?,
                took: self.took.get(row),
            },
            1 => numa::What::Skip {
                offset: large(&self.offset, Column::Offset)?,
                start: start()?,
                end: end()?,
                reason: self.reason.key(row).and_then(|key| *self.skip_reasons.get(key)?),
            },
            2 => numa::What::Arm { start: start()?, end: end()?, changed: self.pages.get(row) },
            3 => numa::What::Hint {
                address: start()?,
                took: self.took.get(row),
                node: self.to_node.get(row),
            },
            4 => numa::What::Process {
                process: process(),
                threads: number(&self.threads, Column::Threads)?,
            },
            5 => numa::What::Region {
                process: process(),
                start: start()?,
                end: end()?,
                traits: self.traits(row)?,
            },
            6 => numa::What::Move(self.place(row)?),
            7 => numa::What::Stick(self.place(row)?),
            8 => {
                let other = self.prev_thread.get(row).unwrap_or(UNKNOWN);
                numa::What::Swap(self.place(row)?, other)
            }
            9 => numa::What::MigrateStart { reason: self.migrate_reason(row) },
            _ => numa::What::Migrated {
                moved: large(&self.pages, Column::Pages)?,
                failed: large(&self.failed, Column::Failed)?,
                reason: self.migrate_reason(row),
            },
        })
    }

    /// The place of a counter among those that are known, or have room beside them.
    fn counter(&self, row: usize, counters: &mut Vec<String>) -> Result<usize, Error> {
        let name = self.need(self.counter.get(row), Column::Counter, row)?;
        if let Some(place) = counters.iter().position(|known| known == name) {
            return Ok(place);
        }
        if counters.len() == MAX_COUNTERS || name.len() > MAX_TEXT_BYTES {
            return Err(
                self.wrong(row, format!("expected at most {MAX_COUNTERS} different counters"))
            );
        }
        counters.push(name.to_owned());
        Ok(counters.len() - 1)
    }

    fn place(&self, row: usize) -> Result<ThreadMove, Error> {
        let number = |column: &Numbers<u32>, which| self.need(column.get(row), which, row);
        Ok(ThreadMove {
            from_cpu: number(&self.from_cpu, Column::FromCpu)?,
            from_node: number(&self.from_node, Column::FromNode)?,
            to_cpu: number(&self.to_cpu, Column::ToCpu)?,
            to_node: number(&self.to_node, Column::ToNode)?,
        })
    }

    fn migrate_reason(&self, row: usize) -> MigrateReason {
        let known = self.reason.key(row).and_then(|key| *self.migrate_reasons.get(key)?);
        known.unwrap_or(MigrateReason::OTHER)
    }

    fn traits(&self, row: usize) -> Result<Traits, Error> {
        let key = self.need(self.traits.key(row), Column::Traits, row)?;
        let traits = self.traits_of_words.get(key).copied().flatten();
        traits.ok_or_else(|| self.unknown(&self.traits, Column::Traits, row))
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
        if text.len() > MAX_TEXT_BYTES {
            let name = column.name();
            return Err(self.wrong(row, format!("`{name}` is longer than {MAX_TEXT_BYTES} bytes")));
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
