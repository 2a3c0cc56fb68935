//! The second thread, which does what the interrupted one cannot.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use percid::testing;

use super::interruption::Interruption;
use crate::guarded::guarded;
use crate::process;
use crate::random::Random;
use crate::report::{Counts, count};
use crate::structure::Structure;

/// Number of waits after which the interrupted thread goes on by itself: the other one must be
/// waiting for it then. Several, since a process that is stopped loses one of them only.
const WAITS: usize = 60;
const WAIT: Duration = Duration::from_secs(1);

/// The exchange of requests and answers.
#[derive(Default)]
pub(super) struct Helper {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    request: Option<Interruption>,
    answer: Option<Result<(), String>>,
    end: bool,
}

/// The CPU of the interrupted thread, and another one if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cpus {
    pub(super) own: u32,
    pub(super) other: Option<u32>,
}

impl Helper {
    /// Makes the helper do its part of an interruption, and waits for that.
    ///
    /// # Errors
    ///
    /// A panic of the structure, or no answer.
    pub(super) fn request(&self, interruption: Interruption) -> Result<(), String> {
        let mut state = self.lock();
        (state.request, state.answer) = (Some(interruption), None);
        self.changed.notify_all();
        for _ in 0..WAITS {
            let unanswered = |state: &mut State| state.answer.is_none();
            let waited = self.changed.wait_timeout_while(state, WAIT, unanswered);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.answer.is_some() {
                break;
            }
        }
        let late = "an operation of another thread waits for the interrupted one";
        state.answer.take().unwrap_or_else(|| Err(late.to_owned()))
    }

    /// Ends [`serve`](Helper::serve).
    pub(super) fn end(&self) {
        self.lock().end = true;
        self.changed.notify_all();
    }

    /// Serves requests until the end.
    pub(super) fn serve(&self, structure: &dyn Structure, cpus: Cpus, seed: u64, counts: &Counts) {
        process::unblock(libc::SIGTRAP);
        let mut random = Random::of_part(seed, 0);
        let mut state = self.lock();
        loop {
            let waiting = |state: &mut State| state.request.is_none() && !state.end;
            let waited = self.changed.wait_while(state, waiting);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            let Some(request) = state.request.take() else { return };
            drop(state);
            let done = guarded(|| serve_one(request, structure, cpus, &mut random, counts));
            state = self.lock();
            state.answer = Some(done);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve_one(
    request: Interruption,
    structure: &dyn Structure,
    cpus: Cpus,
    random: &mut Random,
    counts: &Counts,
) {
    let mut operate_on = |cpu| {
        process::move_to(process::thread(), &[cpu]);
        count(&counts.operations);
        structure.operate(random);
    };
    let other = cpus.other.unwrap_or(cpus.own);
    match request {
        Interruption::Nothing | Interruption::Handler => (),
        Interruption::Neighbour | Interruption::Move => operate_on(cpus.own),
        Interruption::Visit => {
            count(&counts.visits);
            structure.visit();
        }
        Interruption::Steal => {
            // The other CPU gets the stolen ID only if it has none.
            if let Some(freed) = testing::evict(other) {
                freed.put_back(None);
            }
            if let Some(stolen) = testing::steal(cpus.own) {
                count(&counts.steals);
                stolen.put_back(Some(other));
            }
            operate_on(other);
        }
        Interruption::Evict => {
            if let Some(evicted) = testing::evict(cpus.own) {
                count(&counts.evictions);
                evicted.put_back(None);
            }
            operate_on(other);
        }
    }
}
