//! Seizing blocks, from wherever the visitor runs.

use super::state::{Flaw, SeizeStep, Stack, Value, Word};
use super::{Seizure, State};
use crate::structure::state::{Hold, Id};

/// Returns the steps of a seizure.
pub(super) fn steps(flaw: Option<Flaw>) -> &'static [SeizeStep] {
    use SeizeStep::{Clear, Confirm, Exchange, Load, Membarrier, Overwrite, Release, Take};
    match flaw {
        Some(Flaw::NoMembarrier) => &[Load, Exchange, Confirm, Take, Clear, Release],
        Some(Flaw::MembarrierFirst) => &[Load, Membarrier, Exchange, Confirm, Take, Clear, Release],
        Some(Flaw::NoConfirmation) => &[Load, Exchange, Membarrier, Take, Clear, Release],
        Some(Flaw::PlainSeizure) => &[Load, Overwrite, Membarrier, Confirm, Take, Clear, Release],
        Some(Flaw::ReleaseFirst) => &[Load, Exchange, Membarrier, Confirm, Take, Release, Clear],
        _ => &[Load, Exchange, Membarrier, Confirm, Take, Clear, Release],
    }
}

/// Takes one step of a seizure; returns `None` when it is over.
pub(super) fn seize(
    model: &Seizure,
    state: &mut State,
    mut hold: Hold<Stack>,
) -> Option<Hold<Stack>> {
    let id = hold.id;
    let seized = Word::seized(hold.known);
    match hold.step {
        SeizeStep::Load => {
            let word = state.block(id).word;
            if !word.is_active() {
                return None;
            }
            hold.known = word.value;
        }
        SeizeStep::Exchange if state.block(id).word != Word::of(hold.known) => {
            return again(model, id);
        }
        SeizeStep::Confirm if state.block(id).word != seized => return again(model, id),
        SeizeStep::Exchange | SeizeStep::Overwrite => *state.word_mut(id) = seized,
        SeizeStep::Confirm => {}
        SeizeStep::Take => take(state, &hold),
        SeizeStep::Clear => state.mask &= !(1 << id),
        SeizeStep::Release => *state.word_mut(id) = Word::of(Value::Inactive),
        SeizeStep::Membarrier => unreachable!("reaches a CPU of choice"),
    }
    model.after(hold, true)
}

/// Begins again, because a section was faster.
fn again(model: &Seizure, id: Id) -> Option<Hold<Stack>> {
    (model.flaw != Some(Flaw::GivesUp)).then_some(model.first(id))
}

/// Takes the items.
fn take(state: &mut State, hold: &Hold<Stack>) {
    if let Value::Items(items) = hold.known {
        let slots = state.block(hold.id).slots;
        let live = slots[..usize::from(items)].iter().flatten();
        live.for_each(|&item| state.hand_out(item));
    }
}
