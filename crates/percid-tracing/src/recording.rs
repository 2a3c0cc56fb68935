//! The shared state of layer and handles: the ring, and the data to which its records refer.

use std::sync::{Mutex, PoisonError};
use std::{fmt, thread};

use percid::ring::AppendError::{self, Busy};
use percid::{Counter, Overflow, Ring};

use crate::callsites::Callsites;
use crate::clock::Clock;
use crate::held::Held;

/// Maximum number of retries for a record.
const AGAIN: usize = 64;

pub(crate) struct Recording {
    pub(crate) ring: Ring,
    /// Number of records that the ring has counted as lost, and that were retried.
    again: Counter,
    pub(crate) bytes_per_cpu: usize,
    pub(crate) callsites: Callsites,
    pub(crate) clock: Clock,
    held: Mutex<Held>,
}

impl Recording {
    pub(crate) fn new(bytes_per_cpu: usize) -> Recording {
        Recording {
            ring: Ring::new(bytes_per_cpu, Overflow::OverwriteOldest),
            again: Counter::new(),
            bytes_per_cpu,
            callsites: Callsites::new(),
            clock: Clock::start(),
            held: Mutex::default(),
        }
    }

    /// Appends a record. Not inlined: the ring's critical sections are not repeated for every kind
    /// of record. Most errors are ignored, because the ring counts lost records.
    #[inline(never)]
    pub(crate) fn append(&self, record: &[u8]) {
        self.append_by(|| self.ring.append(record));
    }

    fn append_by(&self, append: impl Fn() -> Result<(), AppendError>) {
        if append() == Err(Busy) {
            self.append_again(&append);
        }
    }

    /// Retries an append. While many threads get their first IDs, threads without one share the
    /// shared shard. If its owner is preempted, whole time slices of records would be lost.
    #[cold]
    fn append_again(&self, append: &dyn Fn() -> Result<(), AppendError>) {
        for _ in 0..AGAIN {
            self.again.increment();
            // #[gamma::skip(stmt, reason = "the thread that is waited for runs sooner, or later")]
            thread::yield_now();
            if append() != Err(Busy) {
                return;
            }
        }
    }

    /// Takes the records from the ring, and calls `f` with them and the number of lost records.
    /// Only this crate's code runs under the lock, so a panic hook that dumps does not wait for its
    /// own thread.
    pub(crate) fn look<T>(&self, f: impl FnOnce(&Held, u64) -> T) -> T {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // There is no consumer in a child of a fork that continues its parent's dump. Then only the
        // records that were already taken are available.
        if let Some(mut consumer) = self.ring.consumer() {
            held.take(&mut consumer, self.bytes_per_cpu);
        }
        // In this order, a record that is being retried may be counted as lost. The other order
        // could miss a lost one.
        let again = self.again.sum() as u64;
        let lost = (self.ring.lost() + held.thrown_away).saturating_sub(again);
        f(&held, lost)
    }
}

/// Omits the records: the output for a subscriber should not have megabytes.
impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes_per_cpu;
        f.debug_struct("Recording").field("bytes_per_cpu", &bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_found_no_room_is_tried_again_and_counted_once() {
        for (busy, result, tries) in
            [(0, Ok(()), 1), (2, Ok(()), 3), (2, Err(AppendError::NoMemory), 3), (99, Ok(()), 65)]
        {
            let recording = Recording::new(8 << 10);
            let lost = || recording.look(|_, lost| lost);
            // Records that are too long are lost.
            (0..99).for_each(|_| recording.append(&[0; 8 << 10]));
            assert_eq!(lost(), 99);
            let tried = Cell::new(0);
            recording.append_by(|| {
                tried.set(tried.get() + 1);
                if tried.get() > busy { result } else { Err(Busy) }
            });
            assert_eq!((tried.get(), lost()), (tries, 100 - tries));
        }
    }
}
