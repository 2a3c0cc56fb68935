//! The remote agents, step by step: the migration and the scan.

use super::protocol::Kernel;
use super::state::{
    Agent, ClearStep, CpuNr, Id, Mover, MoverStep, Place, RemoteClear, Scanner, ScannerStep, Slot,
    State, ThreadNr,
};

/// Takes the destination's run-queue lock and loads its slot. A thread that used no ID has nothing
/// to steal and arrives at once.
pub(super) fn begin_move(
    kernel: &Kernel,
    state: &mut State,
    agent: u8,
    thread: ThreadNr,
    to: CpuNr,
) {
    let Place::Waiting(from) = state.thread(thread).place else {
        unreachable!("only waiting threads move")
    };
    if state.thread(thread).last.is_none() {
        state.thread_mut(thread).place = Place::Waiting(to);
        return;
    }
    state.thread_mut(thread).place = Place::Moving(to);
    let settled = state.cpu(to).slot != Slot::Unset;
    let mover =
        Mover { thread, from, to, settled, same_version: false, step: MoverStep::LoadToRecent };
    let next = if settled || !kernel.remembers() {
        unless_full(kernel, state, &mover)
    } else {
        Some(MoverStep::LoadToRecent)
    };
    continue_move(state, agent, mover, next);
}

/// Goes on to the next step of a migration, or ends it and releases the lock.
fn continue_move(state: &mut State, agent: u8, mover: Mover, next: Option<MoverStep>) {
    state.agents[usize::from(agent)] = match next {
        Some(step) => Agent::Mover(Mover { step, ..mover }),
        None => {
            state.thread_mut(mover.thread).place = Place::Waiting(mover.to);
            Agent::Idle
        }
    };
}

/// Starts a scan that a running thread carries out.
pub(super) fn begin_scan(kernel: &Kernel, state: &mut State, agent: u8, by: ThreadNr) {
    state.scan_due = false;
    let scanner = Scanner { by, todo: all_cpus(kernel), weight: None, step: ScannerStep::Visit };
    state.agents[usize::from(agent)] = Agent::Scanner(scanner);
}

fn all_cpus(kernel: &Kernel) -> u8 {
    (1 << kernel.cpus) - 1
}

/// Takes the next step of an agent.
pub(super) fn step(kernel: &Kernel, state: &mut State, agent: u8) {
    match state.agents[usize::from(agent)] {
        Agent::Idle => unreachable!("nothing in flight"),
        Agent::Mover(mut mover) => {
            let next = step_mover(kernel, state, &mut mover);
            continue_move(state, agent, mover, next);
        }
        Agent::Scanner(mut scanner) => {
            let next = step_scanner(kernel, state, &mut scanner);
            go_on(kernel, state, agent, scanner, next);
        }
    }
}

/// Takes one step of a migration; returns `None` when it is over.
fn step_mover(kernel: &Kernel, state: &mut State, mover: &mut Mover) -> Option<MoverStep> {
    match mover.step {
        MoverStep::LoadToRecent => {
            mover.settled = state.cpu(mover.to).recent.is_some();
            unless_full(kernel, state, mover)
        }
        MoverStep::LoadFrom => match state.cpu(mover.from).slot {
            Slot::Valid(id) if state.thread(mover.thread).last == Some(id) => {
                mover.same_version = kernel.tagged;
                Some(MoverStep::Look(id))
            }
            _ => None,
        },
        MoverStep::Look(id) => unless_running(state, mover, MoverStep::Mark(id)),
        MoverStep::Mark(id) => {
            let won = mark(kernel, state, mover.from, id, mover.same_version);
            won.then_some(MoverStep::LookAgain(id))
        }
        MoverStep::LookAgain(id) if may_look(kernel, state, mover.from) => {
            unless_running(state, mover, MoverStep::Release(id))
        }
        MoverStep::LookAgain(_) => None,
        MoverStep::Release(id) => {
            let won = release(kernel, state, mover.from, id, mover.same_version);
            // From here on the agent owns the ID, and the slot that it came from is of no concern
            // to it.
            mover.same_version = false;
            won.then(|| {
                if kernel.remembers() {
                    MoverStep::ForgetRecent(id)
                } else {
                    hand_over(kernel, mover, id)
                }
            })
        }
        MoverStep::ForgetRecent(id) => {
            state.cpu_mut(mover.from).recent = None;
            Some(hand_over(kernel, mover, id))
        }
        MoverStep::Clear(id) => {
            state.clear(id);
            None
        }
        MoverStep::StampTo(id) => {
            state.cpu_mut(mover.to).expired = false;
            Some(MoverStep::InstallTo(id))
        }
        MoverStep::InstallTo(id) => {
            state.install(mover.to, id);
            kernel.remembers().then_some(MoverStep::RememberTo(id))
        }
        MoverStep::RememberTo(id) => {
            state.cpu_mut(mover.to).recent = Some(id);
            None
        }
    }
}

/// Applies R6: a settled destination in a process with as many threads as CPUs is left alone.
fn unless_full(kernel: &Kernel, state: &State, mover: &Mover) -> Option<MoverStep> {
    (!mover.settled || state.users < kernel.cpus).then_some(MoverStep::LoadFrom)
}

/// Ends the migration if the source runs the process: it keeps its ID, and the thread forgets the
/// one it used.
fn unless_running(state: &mut State, mover: &Mover, next: MoverStep) -> Option<MoverStep> {
    if state.cpu(mover.from).seen_running {
        state.thread_mut(mover.thread).last = None;
        return None;
    }
    Some(next)
}

fn hand_over(kernel: &Kernel, mover: &Mover, id: Id) -> MoverStep {
    if mover.settled {
        MoverStep::Clear(id)
    } else if kernel.timed() {
        MoverStep::StampTo(id)
    } else {
        MoverStep::InstallTo(id)
    }
}

/// Returns `true` if the last look may take place. If the source's run-queue lock must be held from
/// that look on and another agent holds it, the attempt ends: the slot stays marked, and its CPU
/// frees the ID at its next switch.
fn may_look(kernel: &Kernel, state: &State, cpu: CpuNr) -> bool {
    !kernel.locks_source || kernel.is_unlocked(state, cpu)
}

/// Tries the first compare-exchange: no thread may start using the ID from here on.
fn mark(kernel: &Kernel, state: &mut State, cpu: CpuNr, id: Id, same_version: bool) -> bool {
    (same_version || !kernel.tagged) && state.exchange(cpu, Slot::Valid(id), Slot::Lazy(id))
}

/// Tries the second compare-exchange: its winner owns the ID.
fn release(kernel: &Kernel, state: &mut State, cpu: CpuNr, id: Id, same_version: bool) -> bool {
    (same_version || !kernel.tagged) && state.exchange(cpu, Slot::Lazy(id), Slot::Unset)
}

/// Begins a remote clear if the slot is valid.
fn load_slot(kernel: &Kernel, state: &State, cpu: CpuNr) -> Option<RemoteClear> {
    match state.cpu(cpu).slot {
        Slot::Valid(id) => {
            Some(RemoteClear { cpu, id, same_version: kernel.tagged, step: ClearStep::Mark })
        }
        Slot::Unset | Slot::Lazy(_) => None,
    }
}

/// Takes one step of a remote clear; returns `None` when it is over.
fn step_clear(kernel: &Kernel, state: &mut State, mut clear: RemoteClear) -> Option<RemoteClear> {
    let RemoteClear { cpu, id, same_version, step } = clear;
    clear.step = match step {
        ClearStep::Mark if mark(kernel, state, cpu, id, same_version) => ClearStep::Look,
        ClearStep::Look if may_look(kernel, state, cpu) && !state.cpu(cpu).seen_running => {
            ClearStep::Release
        }
        ClearStep::Release if release(kernel, state, cpu, id, same_version) => {
            clear.same_version = false;
            ClearStep::Clear
        }
        ClearStep::Clear => {
            state.clear(id);
            return None;
        }
        ClearStep::Mark | ClearStep::Look | ClearStep::Release => return None,
    };
    Some(clear)
}

/// Moves the scan to a CPU: in the first pass it checks its current thread, in the second it loads
/// its slot.
pub(super) fn visit(kernel: &Kernel, state: &mut State, agent: u8, cpu: CpuNr) {
    let Agent::Scanner(mut scanner) = state.agents[usize::from(agent)] else {
        unreachable!("only scans visit")
    };
    scanner.todo &= !(1 << cpu);
    let next = match scanner.weight {
        None if state.cpu(cpu).seen_running => Some(ScannerStep::Stamp(cpu)),
        None => Some(ScannerStep::LoadTime(cpu)),
        Some(weight) => match state.cpu(cpu).slot {
            Slot::Valid(id) if id >= weight => Some(ScannerStep::LoadSlot(cpu)),
            _ => None,
        },
    };
    go_on(kernel, state, agent, scanner, next);
}

/// Takes one step of a scan; returns `None` when it is done with a CPU.
fn step_scanner(kernel: &Kernel, state: &mut State, scanner: &mut Scanner) -> Option<ScannerStep> {
    match scanner.step {
        ScannerStep::Visit => unreachable!("a visit is an action of its own"),
        ScannerStep::Stamp(cpu) => {
            state.cpu_mut(cpu).expired = false;
            None
        }
        ScannerStep::LoadTime(cpu) => state.cpu(cpu).expired.then_some(ScannerStep::LoadSlot(cpu)),
        ScannerStep::LoadSlot(cpu) => load_slot(kernel, state, cpu).map(ScannerStep::Clear),
        ScannerStep::Clear(clear) => step_clear(kernel, state, clear).map(ScannerStep::Clear),
        ScannerStep::LoadWeight => {
            scanner.weight = Some(state.bitmap.count_ones() as u8);
            scanner.todo = all_cpus(kernel);
            None
        }
    }
}

/// Continues after a step of a scan: with the next step, the next CPU, the second pass, or the end.
fn go_on(
    kernel: &Kernel,
    state: &mut State,
    agent: u8,
    mut scanner: Scanner,
    next: Option<ScannerStep>,
) {
    scanner.step = match next {
        Some(step) => step,
        None if scanner.todo == 0 && scanner.weight.is_none() && kernel.weighs => {
            ScannerStep::LoadWeight
        }
        None => ScannerStep::Visit,
    };
    let over = scanner.step == ScannerStep::Visit && scanner.todo == 0;
    state.agents[usize::from(agent)] = if over { Agent::Idle } else { Agent::Scanner(scanner) };
}
