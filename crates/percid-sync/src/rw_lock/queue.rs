//! The threads that wait for a lock: readers for their admission, writers for their turn, and the
//! writer whose turn it is for the readers inside.
//!
//! # Fairness
//!
//! A writer that releases the lock admits all readers that wait, and names the next writer. So a
//! reader waits for one writer at most after the one that has the lock when it comes; and a writer
//! waits only for the readers that were admitted before it, since later ones find the lock closed.
//! Nobody is woken that cannot go on: readers are inside when they wake, and one writer is woken
//! at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The state of the threads that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// `true` if a writer has the lock, or has its turn.
    pub(super) taken: bool,
    /// `true` if the turn was handed over to a writer that waits and has not noticed yet.
    handed_over: bool,
    writers: u32,
    readers: u32,
    /// The number of times that readers were admitted.
    admissions: u64,
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    admission: Condvar,
    turn: Condvar,
    departure: Condvar,
}

/// The exclusive use of a queue.
pub(super) type Locked<'q> = MutexGuard<'q, Waiting>;

impl Queue {
    pub(super) const fn new() -> Queue {
        let waiting =
            Waiting { taken: false, handed_over: false, writers: 0, readers: 0, admissions: 0 };
        Queue {
            waiting: Mutex::new(waiting),
            admission: Condvar::new(),
            turn: Condvar::new(),
            departure: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> Locked<'_> {
        // Nothing panics while the mutex is locked.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a writer admits the readers that wait. Returns `false` if the time is over.
    pub(super) fn wait_for_admission<'q>(
        &'q self,
        mut waiting: Locked<'q>,
        deadline: Option<Instant>,
    ) -> bool {
        let seen = waiting.admissions;
        waiting.readers += 1;
        loop {
            let over = is_over(deadline);
            if !over {
                waiting = wait(&self.admission, waiting, deadline);
            }
            if waiting.admissions != seen {
                return true;
            }
            if over {
                waiting.readers -= 1;
                return false;
            }
        }
    }

    /// Takes the turn of a writer, or waits for it. Returns `None` if the time is over.
    pub(super) fn wait_for_turn(&self, deadline: Option<Instant>) -> Option<Locked<'_>> {
        let mut waiting = self.lock();
        if !waiting.taken {
            waiting.taken = true;
            return Some(waiting);
        }
        waiting.writers += 1;
        loop {
            let over = is_over(deadline);
            if !over {
                waiting = wait(&self.turn, waiting, deadline);
            }
            if waiting.handed_over || over {
                waiting.writers -= 1;
                return std::mem::take(&mut waiting.handed_over).then_some(waiting);
            }
        }
    }

    /// Waits until readers may have left. Returns `None` if the time is over.
    pub(super) fn wait_for_departure<'q>(
        &'q self,
        waiting: Locked<'q>,
        deadline: Option<Instant>,
    ) -> Option<Locked<'q>> {
        (!is_over(deadline)).then(|| wait(&self.departure, waiting, deadline))
    }

    /// Wakes the writer that waits for departures.
    pub(super) fn notify_departure(&self) {
        // A writer that has looked before this reader left waits already when the mutex is free.
        drop(self.lock());
        self.departure.notify_one();
    }

    /// Ends the turn of a writer: `admit` gets the number of readers that wait, and `open` runs if
    /// no writer waits.
    pub(super) fn end_turn(
        &self,
        mut waiting: Locked<'_>,
        admit: impl FnOnce(u32),
        open: impl FnOnce(),
    ) {
        let readers = std::mem::take(&mut waiting.readers);
        if readers > 0 {
            admit(readers);
            waiting.admissions += 1;
        }
        if waiting.writers > 0 {
            waiting.handed_over = true;
        } else {
            waiting.taken = false;
            open();
        }
        let next = waiting.handed_over;
        drop(waiting);
        if readers > 0 {
            self.admission.notify_all();
        }
        if next {
            self.turn.notify_one();
        }
    }

    /// Returns the readers and the writers that wait.
    #[cfg(test)]
    pub(super) fn lengths(&self) -> (u32, u32) {
        let waiting = self.lock();
        (waiting.readers, waiting.writers)
    }
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Waits for a notification, or until the time is over.
fn wait<'q>(condition: &Condvar, waiting: Locked<'q>, deadline: Option<Instant>) -> Locked<'q> {
    let Some(deadline) = deadline else {
        return condition.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    };
    let rest = deadline.saturating_duration_since(Instant::now());
    condition.wait_timeout(waiting, rest).unwrap_or_else(PoisonError::into_inner).0
}
