//! The required effect of an interrupted operation: its effect once, in one place, in the right
//! place.

use std::sync::atomic::Ordering::SeqCst;

use percid_subject::Operation;
use percid_subject::party::{AMOUNT, HANDLER_AMOUNT, LOOT, RECORD_AMOUNT, STATIC_AMOUNT};

use crate::step::Step;
use crate::subject::{Change, Subject};

/// No operation gives up before this many tries.
const FEWEST_TRIES: usize = 8;

/// A round that is over.
#[derive(Debug, Clone, Copy)]
pub struct Effect<'a> {
    /// The subject, between two operations.
    pub subject: &'a Subject,
    /// The operation that ran.
    pub operation: Operation,
    /// The interruptions of the operation.
    pub script: &'a [Step],
    /// The differences between the states before and after it.
    pub change: &'a Change,
}

/// Returns the part of a value that the operation itself added: handlers and thieves add multiples
/// of larger amounts.
pub fn own(value: i64) -> i64 {
    value & (HANDLER_AMOUNT - 1)
}

impl Effect<'_> {
    /// Returns all failures; `complete` is `true` if the whole script took place.
    pub fn wrong(&self, complete: bool) -> Vec<String> {
        let handlers = if complete { self.wrong_handlers() } else { None };
        let without_id = if complete { self.needlessly_without_id() } else { None };
        let place = self.wrong_place();
        let wrong =
            [self.wrong_sum(), handlers, place, without_id, self.two_owners(), self.damage()];
        wrong.into_iter().flatten().collect()
    }

    /// Checks all amounts, each exactly as often as it was added.
    fn wrong_sum(&self) -> Option<String> {
        let amount = match self.operation {
            Operation::Static => STATIC_AMOUNT,
            Operation::Handler => HANDLER_AMOUNT,
            Operation::Twice => 2 * AMOUNT,
            Operation::Record | Operation::Tally => RECORD_AMOUNT,
            _ => AMOUNT,
        };
        let Change { copies, shared, handled, stolen, .. } = self.change;
        let expected = amount + handled * HANDLER_AMOUNT + stolen * LOOT;
        let sum = copies.iter().fold(*shared, |sum, &(_, value)| sum.wrapping_add(value));
        (sum != expected).then(|| format!("added {sum} instead of {expected}"))
    }

    /// Returns damage that the subject has detected: items that came out twice or never, torn
    /// records.
    fn damage(&self) -> Option<String> {
        let (count, last) = self.change.faults;
        (count != 0).then(|| format!("{count} faults in the structure, the last one {last:?}"))
    }

    /// Checks that a handler immediately after the commit does not get the value that is lent then.
    fn two_owners(&self) -> Option<String> {
        let at_commit = |step: &Step| {
            let commit = self.subject.sections[step.section].descriptor.end();
            step.injection.signals() && step.address == commit
        };
        let both = |&&(_, value): &&(usize, i64)| own(value) != 0 && own(value) != value;
        // The first use of a copy comes by the same address without having been lent anything.
        if self.operation != Operation::With || !self.script.iter().any(at_commit) {
            return None;
        }
        let copy = self.change.copies.iter().find(both)?;
        Some(format!("two owners at once: {copy:?}"))
    }

    /// Checks that there was one handler per signal, and that it was told that it interrupted the
    /// pad if the section was left.
    fn wrong_handlers(&self) -> Option<String> {
        let signals: Vec<_> = self.script.iter().filter(|step| step.injection.signals()).collect();
        let handled = self.change.handled;
        if handled != signals.len() as i64 {
            return Some(format!("{handled} handlers for {} signals", signals.len()));
        }
        let &last = signals.last()?;
        let section = self.subject.sections[last.section].descriptor;
        let inside = section.contains(last.address);
        let expected = self.subject.live(if inside { section.abort } else { last.address });
        let told = self.subject.board.interrupted_at.load(SeqCst);
        (told != expected).then(|| format!("a handler returns to {told:#x}, not {expected:#x}"))
    }

    /// Checks that one operation takes place once: in the copy of the CPU on which it was
    /// committed, or without an ID.
    fn wrong_place(&self) -> Option<String> {
        if matches!(self.operation, Operation::Twice | Operation::Handler) {
            return None;
        }
        let copies = self.change.copies.iter().filter(|&&(_, value)| own(value) != 0);
        let ids: Vec<usize> = copies.map(|&(id, _)| id).collect();
        if ids.len() + usize::from(own(self.change.shared) != 0) != 1 {
            return Some(format!("not in exactly one place: {:?}", self.change));
        }
        let current = usize::try_from(self.subject.board.current_id.load(SeqCst)).ok();
        let elsewhere = self.id_is_fixed() && ids.iter().any(|&id| Some(id) != current);
        elsewhere.then(|| format!("counted for {ids:?} on the CPU of {current:?}"))
    }

    /// Checks that an operation with an uninterrupted try works on an ID's copy.
    fn needlessly_without_id(&self) -> Option<String> {
        use Operation::{AppendLost, LinkPop, LinkPopEmpty, Pop, PopEmpty, PopFirst};
        // A popped item may come from the shared list, and a lost record was in no copy.
        let indifferent = matches!(
            self.operation,
            Pop | PopEmpty | PopFirst | LinkPop | LinkPopEmpty | AppendLost
        );
        let stolen = self.script.iter().any(|step| step.injection.steals());
        let excused = indifferent || stolen || self.script.len() >= FEWEST_TRIES;
        (!excused && own(self.change.shared) != 0)
            .then(|| format!("done without an ID: {:?}", self.change))
    }

    /// Returns `true` if the ID after the operation is still the one at its commit. The kernel's
    /// IDs may change at any preemption, a stolen ID may have been replaced, and the thread may
    /// have moved after the commit.
    fn id_is_fixed(&self) -> bool {
        let moved_on = |step: &Step| {
            let commit = self.subject.sections[step.section].descriptor.end();
            step.injection.moves() && step.address == commit
        };
        let kernel = self.subject.source == "kernel" && !self.operation.is_own();
        !kernel && !self.script.iter().any(|step| moved_on(step) || step.injection.steals())
    }
}
