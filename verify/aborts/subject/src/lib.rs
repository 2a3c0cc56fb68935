//! What the program that is interrupted and the program that interrupts it agree on: the board, a page
//! of memory that both map, and the list of operations.

pub mod bell;
pub mod board;

/// What the worker does between two stops.
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
    /// A section of the subject's own without a fault, on which the controls are modelled.
    Sound,
    /// Control: an instruction follows the commit inside the section.
    CommitNotLast,
    /// Control: the abort pad leads behind the commit.
    PadBehindCommit,
    /// Control: the section overwrites one of its inputs.
    InputOverwritten,
    /// Control: an instruction stands between the declaration and the start.
    GapBeforeStart,
    /// Control: the index is read before the section is declared.
    IndexTooEarly,
}

impl Operation {
    /// The operations of percid.
    pub const PERCID: [Operation; 4] =
        [Operation::Static, Operation::Reference, Operation::Twice, Operation::Handler];

    /// The operations that are wrong on purpose.
    pub const CONTROLS: [Operation; 5] = [
        Operation::CommitNotLast,
        Operation::PadBehindCommit,
        Operation::InputOverwritten,
        Operation::GapBeforeStart,
        Operation::IndexTooEarly,
    ];

    /// The operation of this number.
    pub fn from_number(number: u32) -> Option<Operation> {
        let own = [Operation::Sound];
        let all = Operation::PERCID.into_iter().chain(own).chain(Operation::CONTROLS);
        all.into_iter().find(|&operation| operation as u32 == number)
    }

    /// Whether it works on the subject's own cells rather than on a counter of percid.
    pub fn is_own(self) -> bool {
        self as u32 >= Operation::Sound as u32
    }
}

/// What the operation [`Operation::Static`] adds.
pub const STATIC_AMOUNT: i64 = 3;

/// What the signal handler adds each time.
pub const HANDLER_AMOUNT: i64 = 1 << 20;

/// What the thief adds through each stolen ID.
pub const LOOT: i64 = 1 << 40;
