//! The structure of an operation, as the worker, the handler and the accomplice use it.

use std::sync::atomic::Ordering::SeqCst;

use percid::testing::Stolen;
use percid_subject::Operation;
use percid_subject::board::{Answer, Board};

use crate::{cells, counters, floats, histograms, lists, locals, rings, stacks, tallies, words};

/// A structure under examination.
pub(crate) trait Structure: Sync {
    /// Brings it into the state in which `operation` finds it.
    fn prepare(&self, _operation: Operation, _board: &Board) {}

    /// Performs the operation.
    fn perform(&self, operation: Operation, amount: i64);

    /// Performs the same operation on the same structure, in the signal handler that interrupts the
    /// operation.
    fn interrupt(&self, operation: Operation);

    /// Removes the contents, as another thread may do at any time.
    fn visit(&self, _operation: Operation) -> Answer {
        Answer::Refused
    }

    /// Does the same as the operation through a stolen ID, without any protection. Returns `true`
    /// if it did.
    fn rob(&self, _operation: Operation, _stolen: &Stolen) -> bool {
        false
    }

    /// Finds out what has become of the operation, and publishes it.
    fn audit(&self, operation: Operation, board: &Board);

    /// Returns the ID of this CPU's copy, as a hint.
    fn current_id(&self) -> Option<u32> {
        percid::init().source.current_id()
    }
}

/// Returns the structure of an operation.
pub(crate) fn of(operation: Operation) -> &'static dyn Structure {
    use Operation::*;
    match operation {
        Static | Reference | Twice | Handler => &counters::Counters,
        Record | RecordMany => &histograms::Histograms,
        Tally | TallyMany => &tallies::Tallies,
        AddFloat => &floats::Floats,
        WordAdd | WordFirst => &words::Numbers,
        With | WithFirst => &locals::Locals,
        Push | PushFull | PushFirst | Pop | PopEmpty | PopFirst => &stacks::Stacks,
        Append | AppendWrapping | AppendShort | AppendFull | AppendLost => &rings::Rings,
        LinkPush | LinkPop | LinkPopEmpty => &words::Nodes,
        SoundPush | SoundPop | SoundAppend | PushBeforeItem | PopBeforeItem | HeaderAsLeft => {
            &lists::Lists
        }
        Sound | CommitNotLast | PadBehindCommit | InputOverwritten | GapBeforeStart
        | IndexTooEarly => &cells::Cells,
    }
}

/// Returns the structure and the operation that the tracer has chosen; `None` before it has.
pub(crate) fn chosen(board: &Board) -> Option<(&'static dyn Structure, Operation)> {
    let operation = Operation::from_number(board.operation.load(SeqCst))?;
    Some((of(operation), operation))
}
