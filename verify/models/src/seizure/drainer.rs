//! Seizing blocks, from wherever the drainer runs.

use super::protocol::{Flaw, Seizure};
use super::state::{Drain, Drainer, Fault, Hold, Id, SeizeStep, Set, State, Value, Word};
use super::{ownership, thread};

/// The steps of a seizure.
fn steps(flaw: Option<Flaw>) -> &'static [SeizeStep] {
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

/// A drain begins.
pub(super) fn begin(model: &Seizure, state: &mut State, nr: usize) {
    let owed = ownership::owed(model, state);
    let at = if model.flaw == Some(Flaw::NoLock) { Drain::Mask } else { Drain::Lock };
    state.drainers[nr] = Drainer { at, left: 0, owed };
}

/// Whether a drainer can take its next step without a choice. It waits for the lock.
pub(super) fn can_step(state: &State, nr: usize) -> bool {
    match state.drainers[nr].at {
        Drain::Idle | Drain::Choose => false,
        Drain::Lock => !state.locked,
        Drain::Mask | Drain::Unlock => true,
        Drain::Seize(hold) => hold.step != SeizeStep::Membarrier,
    }
}

/// Takes the next step of a drainer.
pub(super) fn step(model: &Seizure, state: &mut State, nr: usize) {
    let mut drainer = state.drainers[nr];
    match drainer.at {
        Drain::Lock => {
            state.locked = true;
            drainer.at = Drain::Mask;
        }
        Drain::Mask => {
            drainer.left = state.mask;
            drainer.at = next(drainer.left);
        }
        Drain::Seize(hold) => {
            match seize(model, state, hold) {
                Some(hold) => drainer.at = Drain::Seize(hold),
                None => drainer.at = next(drainer.left),
            }
            drainer.owed = state.drainers[nr].owed;
        }
        Drain::Unlock => return end(model, state, nr),
        Drain::Idle | Drain::Choose => unreachable!("not a step without a choice"),
    }
    state.drainers[nr] = drainer;
}

fn next(left: Set) -> Drain {
    if left == 0 { Drain::Unlock } else { Drain::Choose }
}

/// Begins to seize one of the blocks that are left.
pub(super) fn choose(state: &mut State, nr: usize, id: Id) {
    let drainer = &mut state.drainers[nr];
    drainer.left &= !(1 << id);
    drainer.at = Drain::Seize(fresh(id));
}

fn fresh(id: Id) -> Hold {
    Hold { id, step: SeizeStep::Load, value: Value::Inactive, reached: 0 }
}

/// One step of a seizure. None: it is over.
fn seize(model: &Seizure, state: &mut State, mut hold: Hold) -> Option<Hold> {
    let id = hold.id;
    let seized = Word::seized(hold.value);
    match hold.step {
        SeizeStep::Load => {
            let word = state.block(id).word;
            if !word.is_active() {
                return None;
            }
            hold.value = word.value;
        }
        SeizeStep::Exchange if state.block(id).word != Word::of(hold.value) => {
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
    after(model, hold)
}

/// A section was faster.
fn again(model: &Seizure, id: Id) -> Option<Hold> {
    (model.flaw != Some(Flaw::GivesUp)).then_some(fresh(id))
}

/// The step after the one that was taken.
fn after(model: &Seizure, mut hold: Hold) -> Option<Hold> {
    let steps = steps(model.flaw);
    let at = steps.iter().position(|&step| step == hold.step);
    hold.step = *steps.get(at.expect("a seizure is at one of its own steps") + 1)?;
    if matches!(hold.step, SeizeStep::Clear | SeizeStep::Release) {
        // What the word said has been used.
        hold.value = Value::Inactive;
    }
    Some(hold)
}

/// Takes the items.
fn take(state: &mut State, hold: &Hold) {
    if let Value::Items(items) = hold.value {
        let slots = state.block(hold.id).slots;
        let live = slots[..usize::from(items)].iter().flatten();
        live.for_each(|&item| state.hand_out(item));
    }
}

/// Membarrier reaches a CPU.
pub(super) fn reach(model: &Seizure, state: &mut State, nr: usize, cpu: u8) {
    match model.flaw {
        Some(Flaw::PlainMembarrier) => thread::flush_all(model, state, cpu),
        _ => thread::fence(model, state, cpu),
    }
    let Drain::Seize(mut hold) = state.drainers[nr].at else { unreachable!("nothing to fence") };
    hold.reached |= 1 << cpu;
    if hold.reached == (1 << model.cpus) - 1 {
        hold.reached = 0;
        hold = after(model, hold).expect("a seizure ends later");
    }
    state.drainers[nr].at = Drain::Seize(hold);
}

/// The drain is over. It must have got what it owed, unless another drainer is at it.
fn end(model: &Seizure, state: &mut State, nr: usize) {
    let others = state.drainers.iter().filter_map(|drainer| match drainer.at {
        Drain::Seize(hold) => Some(hold.id),
        _ => None,
    });
    let excused = others.fold(0, |excused, id| excused | ownership::content(model, state, id));
    if state.drainers[nr].owed & !excused != 0 {
        state.fault = Some(Fault::Owing);
    }
    if model.flaw != Some(Flaw::NoLock) {
        state.locked = false;
    }
    state.drainers[nr] = Drainer::IDLE;
}
