//! The context switch and the exit, step by step.

use super::protocol::{Generation, Kernel, Memory};
use super::state::{CpuNr, CpuStep, Id, Place, Slot, State, Then, ThreadNr};

/// Takes the run-queue lock and stores the new current thread.
pub(super) fn switch(kernel: &Kernel, state: &mut State, nr: CpuNr, next: Option<ThreadNr>) {
    let then = if state.cpu(nr).current.is_some() { Then::Outgoing } else { Then::Incoming };
    set_current(kernel, state, nr, next);
    if let Some(thread) = next {
        state.thread_mut(thread).place = Place::Running(nr);
    }
    state.cpu_mut(nr).step = match kernel.memory {
        Memory::Buffered { barrier: true } => CpuStep::Barrier(then),
        Memory::Buffered { barrier: false } | Memory::Sequential => after_barrier(kernel, then),
    };
}

/// Takes the run-queue lock; the current thread stops being a thread of the process.
pub(super) fn exit(kernel: &Kernel, state: &mut State, nr: CpuNr) {
    set_current(kernel, state, nr, None);
    for thread in &mut state.threads {
        if thread.place == Place::Running(nr) {
            (thread.place, thread.last) = (Place::Dead, None);
        }
    }
    state.cpu_mut(nr).step = match kernel.memory {
        Memory::Buffered { barrier: true } => CpuStep::Barrier(Then::Exiting),
        Memory::Buffered { barrier: false } | Memory::Sequential => {
            after_barrier(kernel, Then::Exiting)
        }
    };
}

/// Stores the new current thread. The preceding lock operation drains the store buffer; the store
/// itself then waits in it.
fn set_current(kernel: &Kernel, state: &mut State, nr: CpuNr, next: Option<ThreadNr>) {
    drain(state, nr);
    state.cpu_mut(nr).current = next;
    if kernel.memory == Memory::Sequential {
        drain(state, nr);
    }
}

/// Makes the current thread visible to the other CPUs.
pub(super) fn drain(state: &mut State, nr: CpuNr) {
    let cpu = state.cpu_mut(nr);
    cpu.seen_running = cpu.current.is_some();
}

fn after_barrier(kernel: &Kernel, then: Then) -> CpuStep {
    match then {
        Then::Outgoing if kernel.timed() => CpuStep::StampOut,
        Then::Outgoing => CpuStep::LoadOut,
        Then::Incoming => CpuStep::LoadIn,
        Then::Exiting => CpuStep::LoadExit,
    }
}

/// Returns `true` if the switch in progress can take its next step: it waits for the slow lock, and
/// for a free ID.
pub(super) fn can_step(kernel: &Kernel, state: &State, nr: CpuNr) -> bool {
    match state.cpu(nr).step {
        CpuStep::Rest => false,
        CpuStep::Lock => state.slow_lock.is_none(),
        CpuStep::LoadBitmap => first_free(kernel, state).is_some(),
        _ => true,
    }
}

fn first_free(kernel: &Kernel, state: &State) -> Option<Id> {
    (0..kernel.cpus).find(|id| state.bitmap & 1 << id == 0)
}

/// Takes the next step of the switch in progress.
pub(super) fn step(kernel: &Kernel, state: &mut State, nr: CpuNr) {
    let now = state.cpu(nr).step;
    if is_atomic_rmw(now) {
        drain(state, nr);
    }
    let next = match now {
        CpuStep::Rest => unreachable!("nothing in progress"),
        CpuStep::Barrier(then) => after_barrier(kernel, then),
        CpuStep::StampOut | CpuStep::LoadOut | CpuStep::ReleaseOut(_) | CpuStep::ClearOut(_) => {
            outgoing(state, nr, now)
        }
        CpuStep::LoadIn | CpuStep::StampIn(_) | CpuStep::ReleaseIn(_) | CpuStep::ClearIn(_) => {
            incoming(kernel, state, nr, now)
        }
        CpuStep::LoadExit | CpuStep::ReleaseExit(_) | CpuStep::ClearExit(_) | CpuStep::Leave => {
            exiting(state, nr, now)
        }
        CpuStep::Unlock(_) | CpuStep::StampNew(_) | CpuStep::Install(_) | CpuStep::Remember(_) => {
            settle(kernel, state, nr, now)
        }
        _ => allocate(kernel, state, nr, now),
    };
    state.cpu_mut(nr).step = next;
    if next == CpuStep::Rest {
        complete(state, nr);
    }
}

/// Returns `true` for atomic read-modify-writes and the barrier, which wait until the store buffer
/// is empty.
fn is_atomic_rmw(step: CpuStep) -> bool {
    !matches!(
        step,
        CpuStep::StampOut
            | CpuStep::LoadOut
            | CpuStep::LoadIn
            | CpuStep::StampIn(_)
            | CpuStep::LoadShrink
            | CpuStep::LoadRecent { .. }
            | CpuStep::LoadMax
            | CpuStep::LoadBitmap
            | CpuStep::Unlock(_)
            | CpuStep::StampNew(_)
            | CpuStep::Install(_)
            | CpuStep::Remember(_)
            | CpuStep::LoadExit
    )
}

/// Handles a previous thread that belongs to the process: stamps its slot, releases it if it is
/// marked.
fn outgoing(state: &mut State, nr: CpuNr, now: CpuStep) -> CpuStep {
    let then = if state.cpu(nr).current.is_some() { CpuStep::LoadIn } else { CpuStep::Rest };
    match now {
        CpuStep::StampOut => {
            state.cpu_mut(nr).expired = false;
            CpuStep::LoadOut
        }
        CpuStep::LoadOut => match state.cpu(nr).slot {
            Slot::Lazy(id) => CpuStep::ReleaseOut(id),
            Slot::Unset | Slot::Valid(_) => then,
        },
        CpuStep::ReleaseOut(id) if state.exchange(nr, Slot::Lazy(id), Slot::Unset) => {
            CpuStep::ClearOut(id)
        }
        CpuStep::ClearOut(id) => {
            state.clear(id);
            then
        }
        _ => then,
    }
}

/// Handles a next thread that belongs to the process: takes over a valid slot, releases a marked
/// one, and allocates otherwise.
fn incoming(kernel: &Kernel, state: &mut State, nr: CpuNr, now: CpuStep) -> CpuStep {
    match now {
        CpuStep::LoadIn => match state.cpu(nr).slot {
            Slot::Valid(id) if kernel.timed() => CpuStep::StampIn(id),
            Slot::Valid(id) => hold(state, nr, id),
            Slot::Lazy(id) => CpuStep::ReleaseIn(id),
            Slot::Unset => begin_allocation(kernel),
        },
        CpuStep::StampIn(id) => {
            state.cpu_mut(nr).expired = false;
            hold(state, nr, id)
        }
        CpuStep::ReleaseIn(id) if state.exchange(nr, Slot::Lazy(id), Slot::Unset) => {
            CpuStep::ClearIn(id)
        }
        CpuStep::ClearIn(id) => {
            state.clear(id);
            begin_allocation(kernel)
        }
        _ => begin_allocation(kernel),
    }
}

fn begin_allocation(kernel: &Kernel) -> CpuStep {
    match kernel.generation {
        Generation::B => CpuStep::LoadBitmap,
        Generation::C => CpuStep::LoadRecent { below: kernel.cpus },
        Generation::D => CpuStep::LoadShrink,
    }
}

fn allocate(kernel: &Kernel, state: &mut State, nr: CpuNr, now: CpuStep) -> CpuStep {
    match now {
        CpuStep::LoadShrink => shrink_or_go_on(kernel, state),
        CpuStep::Shrink { from, to } => {
            if state.max_nr_cid == from {
                state.max_nr_cid = to;
            }
            shrink_or_go_on(kernel, state)
        }
        CpuStep::LoadRecent { below } => match state.cpu(nr).recent.filter(|&id| id < below) {
            Some(id) => CpuStep::TakeRecent(id),
            None => CpuStep::LoadMax,
        },
        CpuStep::TakeRecent(id) if state.take(id) => taken(kernel, state, nr, id),
        CpuStep::TakeRecent(_) => CpuStep::LoadMax,
        CpuStep::LoadMax => raise_or_first_free(kernel, state, state.max_nr_cid),
        CpuStep::Raise(id) if state.max_nr_cid == id => {
            state.max_nr_cid += 1;
            CpuStep::TakeNew(id)
        }
        CpuStep::Raise(_) => raise_or_first_free(kernel, state, state.max_nr_cid),
        CpuStep::TakeNew(id) | CpuStep::TakeFirst(id) if state.take(id) => {
            taken(kernel, state, nr, id)
        }
        // The value is stale now; the next compare-exchange fails and reloads it.
        CpuStep::TakeNew(id) => raise_or_first_free(kernel, state, id),
        CpuStep::LoadBitmap => {
            CpuStep::TakeFirst(first_free(kernel, state).expect("the step was enabled"))
        }
        CpuStep::TakeFirst(_) if state.slow_lock != Some(nr) => CpuStep::Lock,
        CpuStep::TakeFirst(_) => begin_allocation(kernel),
        CpuStep::Lock => {
            state.slow_lock = Some(nr);
            begin_allocation(kernel)
        }
        _ => unreachable!("no step of an allocation: {now:?}"),
    }
}

/// Applies R9, with `max_nr_cid` just loaded or reloaded by the compare-exchange.
fn shrink_or_go_on(kernel: &Kernel, state: &State) -> CpuStep {
    let (from, to) = (state.max_nr_cid, kernel.bound(state));
    if from > to { CpuStep::Shrink { from, to } } else { CpuStep::LoadRecent { below: from } }
}

/// Applies R4: expansion continues while the last known `max_nr_cid` is below the bound.
fn raise_or_first_free(kernel: &Kernel, state: &State, known: u8) -> CpuStep {
    if known < kernel.bound(state) { CpuStep::Raise(known) } else { CpuStep::LoadBitmap }
}

/// Returns the step after the ID's bit was taken.
fn taken(kernel: &Kernel, state: &State, nr: CpuNr, id: Id) -> CpuStep {
    if state.slow_lock == Some(nr) { CpuStep::Unlock(id) } else { unlocked(kernel, id) }
}

fn unlocked(kernel: &Kernel, id: Id) -> CpuStep {
    if kernel.timed() { CpuStep::StampNew(id) } else { CpuStep::Install(id) }
}

/// Stores the allocated ID in shared memory.
fn settle(kernel: &Kernel, state: &mut State, nr: CpuNr, now: CpuStep) -> CpuStep {
    match now {
        CpuStep::Unlock(id) => {
            state.slow_lock = None;
            unlocked(kernel, id)
        }
        CpuStep::StampNew(id) => {
            state.cpu_mut(nr).expired = false;
            CpuStep::Install(id)
        }
        CpuStep::Install(id) => {
            state.install(nr, id);
            if kernel.remembers() { CpuStep::Remember(id) } else { hold(state, nr, id) }
        }
        CpuStep::Remember(id) => {
            state.cpu_mut(nr).recent = Some(id);
            hold(state, nr, id)
        }
        _ => unreachable!("no step of settling: {now:?}"),
    }
}

/// Gives the ID to the current thread, which holds it from here on.
fn hold(state: &mut State, nr: CpuNr, id: Id) -> CpuStep {
    let thread = state.cpu(nr).current.expect("IDs are for current threads");
    state.thread_mut(thread).last = Some(id);
    CpuStep::Rest
}

/// Handles a thread that has left its CPU: its ID is freed, marked or not.
fn exiting(state: &mut State, nr: CpuNr, now: CpuStep) -> CpuStep {
    match now {
        CpuStep::LoadExit => release_or_leave(state.cpu(nr).slot),
        CpuStep::ReleaseExit(slot) if state.exchange(nr, slot, Slot::Unset) => {
            CpuStep::ClearExit(slot.id().expect("only set slots are released"))
        }
        CpuStep::ReleaseExit(_) => release_or_leave(state.cpu(nr).slot),
        CpuStep::ClearExit(id) => {
            state.clear(id);
            CpuStep::Leave
        }
        CpuStep::Leave => {
            state.users -= 1;
            CpuStep::Rest
        }
        _ => unreachable!("no step of an exit: {now:?}"),
    }
}

fn release_or_leave(slot: Slot) -> CpuStep {
    if slot == Slot::Unset { CpuStep::Leave } else { CpuStep::ReleaseExit(slot) }
}

/// Releases the run-queue lock; the previous thread is off this CPU for good.
fn complete(state: &mut State, nr: CpuNr) {
    let current = state.cpu(nr).current;
    for (thread, other) in (0..).zip(&mut state.threads) {
        if other.place == Place::Running(nr) && Some(thread) != current {
            other.place = Place::Waiting(nr);
        }
    }
}
