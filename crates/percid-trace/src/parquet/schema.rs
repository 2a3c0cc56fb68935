//! Columns of the table, and the words in them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use crate::event::{Shares, Stage, What};
use crate::numa;

/// The newest version of the schema that we read.
pub(super) const VERSION: u32 = 3;

/// The parts of a table beside the schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Events of NUMA balancing.
    pub(crate) numa: bool,
    /// Counter values of turns.
    pub(crate) counted: bool,
}

impl Parts {
    /// Returns the oldest version of the schema that has all these parts, so that older programs
    /// read the parts that they support.
    pub(super) fn version(self) -> u32 {
        match self {
            Parts { counted: true, .. } => VERSION,
            Parts { numa: true, .. } => 2,
            Parts { .. } => 1,
        }
    }

    /// Returns `true` if the table contains a column.
    fn has(self, column: Column) -> bool {
        let Parts { numa, counted } = self;
        match column as usize {
            0..Column::OF_SCHEDULES => true,
            Column::OF_SCHEDULES..Column::WITH_NUMA => numa,
            _ => counted,
        }
    }
}

/// The metadata key of the version.
pub(super) const SCHEMA: &str = "percid.schema";

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Time,
    Cpu,
    Event,
    Thread,
    PrevThread,
    PrevState,
    Parent,
    Process,
    FromCpu,
    ToCpu,
    Node,
    Id,
    Shares,
    Cpus,
    Name,
    Start,
    End,
    Offset,
    Pages,
    Failed,
    Ticks,
    Threads,
    FromNode,
    ToNode,
    Reason,
    Traits,
    Took,
    Counter,
    Count,
    Ran,
    Uncounted,
}

/// The content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Nanoseconds.
    Time,
    /// A number of 32 bits.
    Number,
    /// A number of 64 bits.
    Large,
    /// A word.
    Word,
}

impl Column {
    /// All columns, in the order of the file.
    pub(super) const ALL: [Column; 31] = [
        Column::Time,
        Column::Cpu,
        Column::Event,
        Column::Thread,
        Column::PrevThread,
        Column::PrevState,
        Column::Parent,
        Column::Process,
        Column::FromCpu,
        Column::ToCpu,
        Column::Node,
        Column::Id,
        Column::Shares,
        Column::Cpus,
        Column::Name,
        Column::Start,
        Column::End,
        Column::Offset,
        Column::Pages,
        Column::Failed,
        Column::Ticks,
        Column::Threads,
        Column::FromNode,
        Column::ToNode,
        Column::Reason,
        Column::Traits,
        Column::Took,
        Column::Counter,
        Column::Count,
        Column::Ran,
        Column::Uncounted,
    ];

    /// Number of columns in every file.
    pub(super) const OF_SCHEDULES: usize = 15;

    /// Number of columns in files with events of NUMA balancing and without counters.
    const WITH_NUMA: usize = 27;

    /// Returns `true` if a file may lack it.
    pub(super) fn may_lack(self) -> bool {
        self as usize >= Column::OF_SCHEDULES
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Column::Time => "time_ns",
            Column::Cpu => "cpu",
            Column::Event => "event",
            Column::Thread => "thread",
            Column::PrevThread => "prev_thread",
            Column::PrevState => "prev_state",
            Column::Parent => "parent",
            Column::Process => "process",
            Column::FromCpu => "from_cpu",
            Column::ToCpu => "to_cpu",
            Column::Node => "node",
            Column::Id => "id",
            Column::Shares => "shares",
            Column::Cpus => "cpus",
            Column::Name => "name",
            Column::Start => "start",
            Column::End => "end",
            Column::Offset => "offset",
            Column::Pages => "pages",
            Column::Failed => "failed",
            Column::Ticks => "ticks",
            Column::Threads => "threads",
            Column::FromNode => "from_node",
            Column::ToNode => "to_node",
            Column::Reason => "reason",
            Column::Traits => "traits",
            Column::Took => "took_ns",
            Column::Counter => "counter",
            Column::Count => "count",
            Column::Ran => "ran_ns",
            Column::Uncounted => "uncounted_ns",
        }
    }

    pub(super) fn content(self) -> Content {
        match self {
            Column::Time => Content::Time,
            Column::Event
            | Column::PrevState
            | Column::Shares
            | Column::Cpus
            | Column::Name
            | Column::Reason
            | Column::Traits
            | Column::Counter => Content::Word,
            Column::Start
            | Column::End
            | Column::Offset
            | Column::Pages
            | Column::Failed
            | Column::Ticks
            | Column::Took
            | Column::Count
            | Column::Ran
            | Column::Uncounted => Content::Large,
            _ => Content::Number,
        }
    }

    /// Returns `true` if every event has it.
    pub(super) fn always(self) -> bool {
        matches!(self, Column::Time | Column::Cpu | Column::Event | Column::Thread)
    }
}

impl Content {
    pub(super) fn arrow(self) -> DataType {
        match self {
            Content::Time => DataType::Int64,
            Content::Number => DataType::UInt32,
            Content::Large => DataType::UInt64,
            Content::Word => words(),
        }
    }
}

/// The type of words, each of which is kept once.
pub(super) fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The schema that we write.
pub(super) fn schema(parts: Parts) -> Arc<Schema> {
    let field =
        |column: Column| Field::new(column.name(), column.content().arrow(), !column.always());
    let columns = Column::ALL.into_iter().filter(|&column| parts.has(column));
    Arc::new(Schema::new(columns.map(field).collect::<Vec<Field>>()))
}

/// The kind of an event: the word in the column `event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Wakeup(Stage),
    Migrate,
    Fork,
    Exec,
    Exit,
    Affinity,
    Id,
    Tick,
    Member,
    Name,
    /// An event of NUMA balancing, by its place in [`numa::KINDS`].
    Numa(usize),
    /// The value of one counter in a turn of a thread.
    Count,
}

const COUNT: &str = "count";

/// The kinds of a schedule, and their words. Those of NUMA balancing follow.
pub(super) const KINDS: [(Kind, &str); 13] = [
    (Kind::Switch, "switch"),
    (Kind::Wakeup(Stage::Waking), "waking"),
    (Kind::Wakeup(Stage::Woken), "wakeup"),
    (Kind::Wakeup(Stage::New), "wakeup_new"),
    (Kind::Migrate, "migrate"),
    (Kind::Fork, "fork"),
    (Kind::Exec, "exec"),
    (Kind::Exit, "exit"),
    (Kind::Affinity, "affinity"),
    (Kind::Id, "id"),
    (Kind::Tick, "tick"),
    (Kind::Member, "member"),
    (Kind::Name, "name"),
];

impl Kind {
    pub(super) fn from_what(what: &What) -> Kind {
        match what {
            What::Switch { .. } => Kind::Switch,
            What::Wakeup { stage, .. } => Kind::Wakeup(*stage),
            What::Migrate { .. } => Kind::Migrate,
            What::Fork { .. } => Kind::Fork,
            What::Exec { .. } => Kind::Exec,
            What::Exit { .. } => Kind::Exit,
            What::Affinity { .. } => Kind::Affinity,
            What::Id { .. } => Kind::Id,
            What::Tick { .. } => Kind::Tick,
            What::Member { .. } => Kind::Member,
            What::Name { .. } => Kind::Name,
        }
    }

    /// Its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Numa(kind) => numa::KINDS[kind],
            Kind::Count => COUNT,
            _ => KINDS[self.place()].1,
        }
    }

    /// Its place in [`KINDS`], or a number after these.
    pub(super) fn place(self) -> usize {
        match self {
            Kind::Switch => 0,
            Kind::Wakeup(Stage::Waking) => 1,
            Kind::Wakeup(Stage::Woken) => 2,
            Kind::Wakeup(Stage::New) => 3,
            Kind::Migrate => 4,
            Kind::Fork => 5,
            Kind::Exec => 6,
            Kind::Exit => 7,
            Kind::Affinity => 8,
            Kind::Id => 9,
            Kind::Tick => 10,
            Kind::Member => 11,
            Kind::Name => 12,
            Kind::Numa(kind) => KINDS.len() + kind,
            Kind::Count => KINDS.len() + numa::KINDS.len(),
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Kind> {
        let of_schedule = KINDS.iter().find(|(_, known)| *known == word).map(|&(kind, _)| kind);
        let of_numa = || numa::KINDS.iter().position(|&known| known == word).map(Kind::Numa);
        of_schedule.or_else(of_numa).or_else(|| (word == COUNT).then_some(Kind::Count))
    }
}

/// The values of [`Shares`] and the words for them. [`Shares::Unknown`] is null.
pub(super) const SHARES: [(Shares, &str); 3] =
    [(Shares::Nothing, "nothing"), (Shares::Memory, "memory"), (Shares::Process, "process")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_columns_of_its_parts_and_the_oldest_version_for_them() {
        let found = |numa, counted| {
            let parts = Parts { numa, counted };
            let schema = schema(parts);
            let has = |name| schema.column_with_name(name).is_some();
            (parts.version(), schema.fields().len(), has("took_ns"), has("uncounted_ns"))
        };
        assert_eq!(found(false, false), (1, 15, false, false));
        assert_eq!(found(true, false), (2, 27, true, false));
        assert_eq!(found(false, true), (3, 19, false, true));
        assert_eq!(found(true, true), (3, 31, true, true));
    }

    #[test]
    fn every_kind_stands_in_its_place() {
        for (place, (kind, word)) in KINDS.into_iter().enumerate() {
            assert_eq!(kind.place(), place);
            assert_eq!(Kind::from_word(word), Some(kind));
        }
        for (nr, word) in numa::KINDS.into_iter().enumerate() {
            assert_eq!(Kind::from_word(word), Some(Kind::Numa(nr)));
            assert_eq!(Kind::Numa(nr).word(), word);
        }
        assert_eq!(Kind::from_word(Kind::Count.word()), Some(Kind::Count));
    }
}
