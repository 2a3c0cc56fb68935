//! Threads, and the stores of the CPUs that they run on.

use super::state::{CpuNr, Due, State, Thread, Work};
use super::{Action, Protocol, Structure};
use crate::explore::Model;
use crate::memory::Memory;

/// More own steps than the longest undisturbed operation takes.
const SOLO_STEPS: usize = 32;

impl<P: Protocol> Structure<P> {
    /// Returns `true` if a thread can take its next step.
    pub(super) fn can_step(&self, state: &State<P>, nr: usize) -> bool {
        next_step(state, nr).is_some_and(|Due { cpu, work, .. }| {
            let has_no_room = P::stores(work) && state.buffers[usize::from(cpu)].is_full();
            !(has_no_room || P::waits(self, state, cpu, work.at))
        })
    }

    /// Takes the next step of a thread.
    pub(super) fn step(&self, state: &mut State<P>, nr: usize) {
        let due = next_step(state, nr).expect("only running threads step");
        let next = P::step(self, state, due);
        state.threads[nr].work = next.map(|at| Work { at, ..due.work });
    }

    /// Returns `true` if the next step of a thread may fail.
    pub(super) fn can_fail(&self, state: &State<P>, nr: usize) -> bool {
        next_step(state, nr).is_some_and(|Due { cpu, work, .. }| {
            P::failure(work.at).is_some() && !state.buffers[usize::from(cpu)].is_full()
        })
    }

    /// Fails the next step of a thread, which ends its operation.
    pub(super) fn fail(&self, state: &mut State<P>, nr: usize) {
        let Due { cpu, work, .. } = next_step(state, nr).expect("only running threads fail");
        P::failure(work.at).into_iter().for_each(|write| self.store(state, cpu, write));
        state.threads[nr].work = None;
    }

    /// Performs a store of a thread.
    pub(crate) fn store(&self, state: &mut State<P>, cpu: CpuNr, write: P::Write) {
        match self.memory {
            Memory::Sequential => P::perform(self, state, write),
            Memory::Fifo | Memory::Unordered => state.buffers[usize::from(cpu)].push(write),
        }
    }

    /// Makes a waiting store of a CPU visible.
    pub(crate) fn flush(&self, state: &mut State<P>, cpu: CpuNr, index: usize) {
        let write = state.buffers[usize::from(cpu)].remove(index);
        P::perform(self, state, write);
    }

    /// Performs a full barrier on a CPU.
    pub(crate) fn flush_all(&self, state: &mut State<P>, cpu: CpuNr) {
        let writes = state.buffers[usize::from(cpu)].take();
        writes.for_each(|write| P::perform(self, state, write));
    }

    /// Aborts the critical section of a thread at a preemption, a migration or a fence: it begins
    /// again.
    pub(super) fn abort(&self, thread: &mut Thread<P>) {
        if let Some(work) = &mut thread.work {
            work.at = P::aborted(self, work.at);
        }
    }

    /// Preempts a thread. A context switch is a full barrier.
    pub(super) fn preempt(&self, state: &mut State<P>, nr: usize) {
        self.abort(&mut state.threads[nr]);
        if let Some(cpu) = state.threads[nr].on.take() {
            self.flush_all(state, cpu);
        }
    }

    /// Fences a CPU: a full barrier, and the section in flight there is aborted.
    pub(super) fn fence(&self, state: &mut State<P>, cpu: CpuNr) {
        self.flush_all(state, cpu);
        let here = state.threads.iter_mut().filter(|thread| thread.on == Some(cpu));
        here.for_each(|thread| self.abort(thread));
    }

    /// Returns `true` if a running thread comes to the end of its operation when no other thread
    /// takes a step and nothing disturbs it.
    pub(super) fn finishes_alone(&self, state: &State<P>, nr: usize) -> bool {
        let mut alone = *state;
        for _ in 0..SOLO_STEPS {
            let Some(Due { cpu, .. }) = next_step(&alone, nr) else { return true };
            let action = if self.can_step(&alone, nr) {
                Action::Thread(nr)
            } else if !alone.buffers[usize::from(cpu)].is_empty() {
                Action::Flush(cpu, 0)
            } else {
                return false;
            };
            alone = self.apply(&alone, action);
        }
        false
    }
}

/// Returns the step that a running thread is about to take.
pub(super) fn next_step<P: Protocol>(state: &State<P>, nr: usize) -> Option<Due<P>> {
    let Thread { on: Some(cpu), work: Some(work), .. } = state.threads[nr] else { return None };
    Some(Due { nr, cpu, work })
}
