//! The traced program: a bounded queue of tasks, one thread that submits them, several that work.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::event::Name;
use crate::recorder::Recorder;

/// Maximum number of waiting tasks: a thread that submits more must wait.
const BOUND: usize = 64;

/// The numbers that a task sorts.
const NUMBERS: usize = 1000;

/// Tasks that were submitted and not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    tasks: VecDeque<u32>,
    closed: bool,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue::default()
    }

    /// Submits tasks, one span for each, and closes the queue. Ends early if another thread closes
    /// it.
    pub(crate) fn submit_all(&self, tasks: u32, recorder: &Recorder<'_>) {
        for task in 0..tasks {
            let _span = recorder.span(Name::Submit, task);
            let mut state = self.wait_while(|it| it.tasks.len() >= BOUND && !it.closed);
            if state.closed {
                return;
            }
            state.tasks.push_back(task);
            self.changed.notify_all();
        }
        self.close();
    }

    /// Lets the workers end when all tasks are done.
    pub(crate) fn close(&self) {
        self.wait_while(|_| false).closed = true;
        self.changed.notify_all();
    }

    /// Runs a worker: a span for waiting, one for the task, and in it one for each of its parts.
    pub(crate) fn work(&self, recorder: &Recorder<'_>) {
        let mut numbers = Vec::with_capacity(NUMBERS);
        for round in 0.. {
            let wait = recorder.span(Name::Wait, round);
            let Some(task) = self.take() else { return };
            drop(wait);
            let _task = recorder.span(Name::Task, task);
            {
                let _fill = recorder.span(Name::Fill, task);
                fill(&mut numbers, task);
            }
            let _sort = recorder.span(Name::Sort, task);
            numbers.sort_unstable();
        }
    }

    /// Returns the next task; `None` once there will be no more.
    fn take(&self) -> Option<u32> {
        let task = self.wait_while(|it| it.tasks.is_empty() && !it.closed).tasks.pop_front();
        self.changed.notify_all();
        task
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.wait_while(state, condition).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers in no order, by Marsaglia's xorshift.
fn fill(numbers: &mut Vec<u64>, task: u32) {
    let mut number = u64::from(task) + 1;
    numbers.clear();
    numbers.extend((0..NUMBERS).map(|_| {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        number
    }));
}
