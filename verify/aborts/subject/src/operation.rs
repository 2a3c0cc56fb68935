//! The operations: what the worker does between two stops.

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// `Counter::add` of a constant to a `static` counter, which uses the source of the process.
    Static,
    /// `Counter::add` of a variable through a `&Counter` made by `Counter::with_source`.
    Reference,
    /// Two increments of one counter in a row, which share what the compiler can hoist.
    Twice,
    /// The increment of the signal handler, called like a function.
    Handler,
    /// `Histogram::record`.
    Record,
    /// `Histogram::record_many`, which the signal handler uses.
    RecordMany,
    /// `Buckets::record`.
    Tally,
    /// `Buckets::record_many`, which the signal handler uses.
    TallyMany,
    /// `FloatCounter::add`.
    AddFloat,
    /// `PerId::add`.
    WordAdd,
    /// `PerId::add` if the ID has no value yet.
    WordFirst,
    /// `Local::with` if the ID has a value.
    With,
    /// `Local::with` if it has none yet.
    WithFirst,
    /// `Stack::push` if there is space.
    Push,
    /// `Stack::push` to a full part, which moves a batch to the shared list.
    PushFull,
    /// `Stack::push` to an inactive part.
    PushFirst,
    /// `Stack::pop` of an item of the CPU's part.
    Pop,
    /// `Stack::pop` from an empty part, which fetches a batch from the shared list.
    PopEmpty,
    /// `Stack::pop` from an inactive part, which fetches a batch as well.
    PopFirst,
    /// `Ring::append` of two words; the compiler knows that number.
    Append,
    /// `Ring::append` of seven words and a rest, from the end of the ring to its beginning.
    AppendWrapping,
    /// `Ring::append` of three bytes.
    AppendShort,
    /// `Ring::append` to a full ring, whose oldest records it discards.
    AppendFull,
    /// `Ring::append` to a full ring that keeps the oldest records: the loss is counted.
    AppendLost,
    /// `PerId::push`.
    LinkPush,
    /// `PerId::pop` of an item.
    LinkPop,
    /// `PerId::pop` from an empty list.
    LinkPopEmpty,

    /// A section of the subject's own without a fault, the model of the negative controls.
    Sound,
    /// Like `Sound`: a push to a stack of the subject's own.
    SoundPush,
    /// Like `Sound`: a pop from that stack.
    SoundPop,
    /// Like `Sound`: a record appended to a log of the subject's own.
    SoundAppend,

    /// Negative control: an instruction follows the commit inside the section.
    CommitNotLast,
    /// Negative control: the abort pad leads to an instruction after the commit.
    PadBehindCommit,
    /// Negative control: the section overwrites one of its inputs.
    InputOverwritten,
    /// Control: an instruction stands between the declaration and the start.
    GapBeforeStart,
    /// Control: the index is read before the section is declared.
    IndexTooEarly,
    /// Control: a push that announces its item before it has written it: live memory changes before
    /// the commit.
    PushBeforeItem,
    /// Control: a pop that takes its item off before it has read it.
    PopBeforeItem,
    /// Control: an append that takes for granted what an aborted try may have left in the next
    /// header.
    HeaderAsLeft,
}

use Operation::*;

impl Operation {
    /// The operations of percid.
    pub const PERCID: [Operation; 27] = [
        Static,
        Reference,
        Twice,
        Handler,
        Record,
        RecordMany,
        Tally,
        TallyMany,
        AddFloat,
        WordAdd,
        WordFirst,
        With,
        WithFirst,
        Push,
        PushFull,
        PushFirst,
        Pop,
        PopEmpty,
        PopFirst,
        Append,
        AppendWrapping,
        AppendShort,
        AppendFull,
        AppendLost,
        LinkPush,
        LinkPop,
        LinkPopEmpty,
    ];

    /// The subject's own operations that are right.
    pub const SOUND: [Operation; 4] = [Sound, SoundPush, SoundPop, SoundAppend];

    /// The operations that are wrong on purpose.
    pub const CONTROLS: [Operation; 8] = [
        CommitNotLast,
        PadBehindCommit,
        InputOverwritten,
        GapBeforeStart,
        IndexTooEarly,
        PushBeforeItem,
        PopBeforeItem,
        HeaderAsLeft,
    ];

    /// Returns the operation with this number.
    pub fn from_number(number: u32) -> Option<Operation> {
        let all = Operation::PERCID.into_iter().chain(Operation::SOUND);
        let mut all = all.chain(Operation::CONTROLS);
        all.find(|&operation| operation as u32 == number)
    }

    /// Returns `true` if it works on the subject's own memory instead of a structure of percid.
    pub fn is_own(self) -> bool {
        self as u32 >= Sound as u32
    }

    /// Returns `true` if another thread may remove the structure's contents while the operation
    /// runs.
    pub fn has_visitors(self) -> bool {
        self as u32 >= With as u32 && !self.is_own()
    }
}
