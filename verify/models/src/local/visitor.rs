//! Visiting the shards of all IDs.

use super::state::{Fault, Flaw, Lock, Step, Taking};
use super::{Local, State};
use crate::structure::state::{Hold, Id, Set, Visit, Visitor};

/// Returns the steps of a visit to a shard.
pub(super) fn steps(model: &Local) -> &'static [Step] {
    use Step::{Clear, Close, Membarrier, Open, Release, Take, Use};
    match (model.flaw, model.protocol) {
        (Some(Flaw::NoMembarrier), _) => &[Close, Take, Use, Clear, Release, Open],
        (Some(Flaw::MembarrierFirst), _) => &[Membarrier, Close, Take, Use, Clear, Release, Open],
        (Some(Flaw::NoClosing), Taking::Section) => &[Membarrier, Take, Use, Clear, Release],
        (Some(Flaw::NoClosing), Taking::Exchange) => &[Take, Use, Clear, Release],
        (Some(Flaw::ClearLast), _) => &[Close, Membarrier, Take, Use, Release, Open, Clear],
        (Some(Flaw::OpenFirst | Flaw::OpenFirstNoExchange), _) => {
            &[Close, Membarrier, Take, Use, Clear, Open, Release]
        }
        (_, Taking::Section) => &[Close, Membarrier, Take, Use, Clear, Release, Open],
        (_, Taking::Exchange) => &[Close, Take, Use, Clear, Release, Open],
    }
}

/// Returns `true` if a visitor owns a shard: it has taken the lock, and not released it.
pub(super) fn owns(model: &Local, visitor: &Visitor<Taking>, id: Id) -> bool {
    let Visit::At(hold) = visitor.at else { return false };
    let place = |step| steps(model).iter().position(|&other| other == step);
    hold.id == id
        && place(Step::Take) < place(hold.step)
        && place(hold.step) <= place(Step::Release)
}

/// Returns the values that a visit must find if it begins now: all whose bits are set.
pub(super) fn owed(model: &Local, state: &State) -> Set {
    let values = (0..model.ids).filter(|&id| state.shard(id).value);
    values.fold(0, |values, id| values | 1 << id) & state.mask
}

/// Takes one step of a visit to a shard.
pub(super) fn act(
    model: &Local,
    state: &mut State,
    nr: usize,
    mut hold: Hold<Taking>,
) -> Option<Hold<Taking>> {
    let (id, drains) = (hold.id, state.visitors[nr].drains);
    match hold.step {
        Step::Close => state.shard_mut(id).closed = true,
        Step::Membarrier => unreachable!("reaches a CPU of choice"),
        Step::Take => {
            state.threads.iter_mut().for_each(|thread| thread.overtook = false);
            if state.shard(id).lock != Lock::Ready {
                let opens = steps(model).contains(&Step::Open);
                return opens.then_some(Hold { step: Step::Open, ..hold });
            }
            hold.known = true;
            if model.exchanges() {
                state.shard_mut(id).lock = Lock::Held;
            }
        }
        Step::Use => use_value(state, nr, id),
        Step::Clear => state.mask &= !(1 << id),
        Step::Release => {
            state.shard_mut(id).lock = if drains { Lock::None } else { Lock::Ready };
        }
        Step::Open => state.shard_mut(id).closed = false,
    }
    model.after(hold, drains)
}

/// Uses the value, or takes it out.
fn use_value(state: &mut State, nr: usize, id: Id) {
    if !state.shard(id).value {
        state.fault = Some(Fault::Revived);
    }
    if state.visitors[nr].drains {
        state.shard_mut(id).value = false;
        state.visitors.iter_mut().for_each(|visitor| visitor.owed &= !(1 << id));
    }
    state.visitors[nr].owed &= !(1 << id);
}
