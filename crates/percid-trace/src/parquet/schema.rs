//! The columns, and the names of what stands in them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use crate::event::{Shares, Stage, What};
use crate::numa;

/// The newest version of the schema that we read. What has events of NUMA balancing is written in
/// it, all else in the one before, which has not their columns.
pub(super) const VERSION: u32 = 2;

/// The version for traces without events of NUMA balancing.
pub(super) const VERSION_OF_SCHEDULES: u32 = 1;

/// The key of the metadata under which the version stands.
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
}

/// What stands in a column.
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
    /// All, as they stand in the file.
    pub(super) const ALL: [Column; 27] = [
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
    ];

    /// How many of them stand also in files without events of NUMA balancing.
    pub(super) const OF_SCHEDULES: usize = 15;

    /// Whether a file may lack it.
    pub(super) fn is_of_numa(self) -> bool {
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
            | Column::Traits => Content::Word,
            Column::Start
            | Column::End
            | Column::Offset
            | Column::Pages
            | Column::Failed
            | Column::Ticks
            | Column::Took => Content::Large,
            _ => Content::Number,
        }
    }

    /// Whether every event has it.
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

/// The schema that we write, with the columns of NUMA balancing or without.
pub(super) fn schema(numa: bool) -> Arc<Schema> {
    let field =
        |column: Column| Field::new(column.name(), column.content().arrow(), !column.always());
    let columns = if numa { Column::ALL.len() } else { Column::OF_SCHEDULES };
    Arc::new(Schema::new(Column::ALL.map(field)[..columns].to_vec()))
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
    /// One of NUMA balancing, by its place in [`numa::KINDS`].
    Numa(usize),
}

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
    pub(super) fn of(what: &What) -> Kind {
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
            _ => KINDS[self.place()].1,
        }
    }

    /// Its place in [`KINDS`], or behind.
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
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Kind> {
        let of_schedule = KINDS.iter().find(|(_, known)| *known == word).map(|&(kind, _)| kind);
        of_schedule.or_else(|| numa::KINDS.iter().position(|&known| known == word).map(Kind::Numa))
    }
}

/// What a new thread shares, and the words for it. [`Shares::Unknown`] is null.
pub(super) const SHARES: [(Shares, &str); 3] =
    [(Shares::Nothing, "nothing"), (Shares::Memory, "memory"), (Shares::Process, "process")];

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
