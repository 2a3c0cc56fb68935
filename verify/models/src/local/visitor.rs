//! Visiting the shards of all IDs, from wherever the visitor runs.

use super::protocol::{Flaw, Local, Taking};
use super::state::{Fault, Hold, Id, Lock, Set, State, Step, Visit, Visitor};
use super::thread;

/// The steps of a visit to a shard.
fn steps(model: &Local) -> &'static [Step] {
    use Step::{Clear, Close, Membarrier, Open, Release, Take, Use};
    match (model.flaw, model.taking) {
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

/// Whether a visitor owns a shard: it has taken the lock, and not released it.
pub(super) fn owns(model: &Local, visitor: &Visitor, id: Id) -> bool {
    let Visit::Shard(hold) = visitor.at else { return false };
    let place = |step| steps(model).iter().position(|&other| other == step);
    hold.id == id
        && place(Step::Take) < place(hold.step)
        && place(hold.step) <= place(Step::Release)
}

/// What a visit that begins now must find: all values whose bits are set.
fn owed(model: &Local, state: &State) -> Set {
    let values = (0..model.ids).filter(|&id| state.shard(id).value);
    values.fold(0, |values, id| values | 1 << id) & state.mask
}

/// A visit begins.
pub(super) fn begin(model: &Local, state: &mut State, nr: usize, drains: bool) {
    let owed = owed(model, state);
    let at = if model.flaw == Some(Flaw::NoTurns) { Visit::Mask } else { Visit::Turn };
    state.visitors[nr] = Visitor { at, drains, left: 0, owed };
}

/// Whether a visitor can take its next step without a choice. It waits for its turn, and for the
/// holder of a lock.
pub(super) fn can_step(model: &Local, state: &State, nr: usize) -> bool {
    match state.visitors[nr].at {
        Visit::Idle | Visit::Choose => false,
        Visit::Turn => !state.turn,
        Visit::Mask | Visit::End => true,
        Visit::Shard(Hold { step: Step::Membarrier, .. }) => false,
        Visit::Shard(Hold { id, step: Step::Take, .. }) => {
            state.shard(id).lock != Lock::Held || model.flaw == Some(Flaw::SkipsHeld)
        }
        Visit::Shard(_) => true,
    }
}

/// Takes the next step of a visitor.
pub(super) fn step(model: &Local, state: &mut State, nr: usize) {
    match state.visitors[nr].at {
        Visit::Turn => {
            state.turn = true;
            state.visitors[nr].at = Visit::Mask;
        }
        Visit::Mask => {
            state.visitors[nr].left = state.mask;
            state.visitors[nr].at = next(state.mask);
        }
        Visit::Shard(hold) => {
            let then = act(model, state, nr, hold);
            let visitor = &mut state.visitors[nr];
            visitor.at = then.map_or(next(visitor.left), Visit::Shard);
        }
        Visit::End => end(model, state, nr),
        Visit::Idle | Visit::Choose => unreachable!("not a step without a choice"),
    }
}

fn next(left: Set) -> Visit {
    if left == 0 { Visit::End } else { Visit::Choose }
}

/// Begins to visit one of the shards that are left.
pub(super) fn choose(model: &Local, state: &mut State, nr: usize, id: Id) {
    let visitor = &mut state.visitors[nr];
    visitor.left &= !(1 << id);
    visitor.at = Visit::Shard(Hold { id, step: steps(model)[0], taken: false, reached: 0 });
}

/// One step of a visit to a shard. None: it is over.
fn act(model: &Local, state: &mut State, nr: usize, mut hold: Hold) -> Option<Hold> {
    let id = hold.id;
    match hold.step {
        Step::Close => state.shard_mut(id).closed = true,
        Step::Membarrier => unreachable!("reaches a CPU of choice"),
        Step::Take => {
            state.threads.iter_mut().for_each(|thread| thread.overtook = false);
            if state.shard(id).lock != Lock::Ready {
                let opens = steps(model).contains(&Step::Open);
                return opens.then_some(Hold { step: Step::Open, ..hold });
            }
            hold.taken = true;
            if model.exchanges() {
                state.shard_mut(id).lock = Lock::Held;
            }
        }
        Step::Use => use_value(state, nr, id),
        Step::Clear => state.mask &= !(1 << id),
        Step::Release => state.shard_mut(id).lock = released(state, nr),
        Step::Open => state.shard_mut(id).closed = false,
    }
    after(model, state, nr, hold)
}

/// The step after the one that was taken. A visitor that took no value out leaves the bit alone.
fn after(model: &Local, state: &State, nr: usize, mut hold: Hold) -> Option<Hold> {
    let steps = steps(model);
    let at = steps.iter().position(|&step| step == hold.step);
    let rest = &steps[at.expect("a visit is at one of its own steps") + 1..];
    let leaves_alone = |step| step == Step::Clear && !(hold.taken && state.visitors[nr].drains);
    let step = rest.iter().copied().find(|&step| !leaves_alone(step))?;
    hold.step = step;
    Some(hold)
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

fn released(state: &State, nr: usize) -> Lock {
    if state.visitors[nr].drains { Lock::None } else { Lock::Ready }
}

/// Membarrier reaches a CPU.
pub(super) fn reach(model: &Local, state: &mut State, nr: usize, cpu: u8) {
    match model.flaw {
        Some(Flaw::PlainMembarrier) => thread::flush_all(state, cpu),
        _ => thread::fence(model, state, cpu),
    }
    let Visit::Shard(mut hold) = state.visitors[nr].at else { unreachable!("nothing to fence") };
    hold.reached |= 1 << cpu;
    if hold.reached == (1 << model.cpus) - 1 {
        hold.reached = 0;
        hold = after(model, state, nr, hold).expect("a visit ends later");
    }
    state.visitors[nr].at = Visit::Shard(hold);
}

/// The visit is over. It must have had what it owed.
fn end(model: &Local, state: &mut State, nr: usize) {
    if state.visitors[nr].owed != 0 {
        state.fault = Some(Fault::Owing);
    }
    if model.flaw != Some(Flaw::NoTurns) {
        state.turn = false;
    }
    state.visitors[nr] = Visitor::IDLE;
}
