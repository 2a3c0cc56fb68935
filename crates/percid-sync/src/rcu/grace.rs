//! Grace periods: each waits for the readers that were inside when it began, and serves every thread
//! that asked for one before that.
//!
//! # Protocol and proof
//!
//! Readers count themselves in one of two numbers, by the parity of the phase that they read. A
//! grace period runs [`fence::all`], waits until the number of the other parity is zero, changes the
//! phase, and waits until the number of the old parity is zero.
//!
//! *A reader that misses what was stored before the grace period has left at its end.* The reader
//! counts itself and runs [`fence::light`] before it reads. If it misses the store, the passes after
//! the fence count its entry ([`fence`](percid::fence)), in whichever of the two numbers it is. Both
//! are found zero after the fence, so its exit was counted too, and what it did inside happens
//! before ([the proof of the sum](crate::readers)).
//!
//! *It ends.* New readers do not enter the number that is waited for, except those that have read
//! the phase before it changed; each of them does so once.
//!
//! *Sharing.* A thread that asks while a grace period runs needs the next one, since that began too
//! early; otherwise the next one, too. One of the threads that need it runs it. So `n` threads that
//! ask at once run at most two grace periods beyond the one that was running.
//!
//! The light fence is nothing but a barrier for the compiler in most processes. The phase says if it
//! is known to be: its bit [`FENCED`] is set until then, and forever where it is not.
//!
//! The model `sync_grace` of percid's verification fails without the fence, with the fence before
//! the store, with one sum, and if only one number is waited for.

use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use percid::Source;
use percid::id::SourceError;

use crate::fence::{self, Unfenced};
use crate::readers::Readers;

/// The bit of a phase that is the parity of its readers' number.
const PARITY: usize = 1;
/// The bit of a phase whose readers must run [`fence::light`].
const FENCED: usize = 2;

/// The first and the longest pause between two looks at the readers.
const PAUSES: [Duration; 2] = [Duration::from_micros(10), Duration::from_millis(1)];
/// Looks without a pause.
const LOOKS: u32 = 10;

/// The readers of a domain, and its grace periods.
pub(super) struct Grace {
    phase: AtomicUsize,
    readers: [Readers; 2],
    periods: Mutex<Periods>,
    end: Condvar,
}

/// Grace periods, by their numbers from 1.
#[derive(Debug, Default)]
struct Periods {
    /// The last one that has begun.
    begun: u64,
    /// The last one that has ended.
    ended: u64,
    /// `true` while one runs.
    running: bool,
    /// The threads that wait for the end of one.
    waiting: usize,
}

impl Grace {
    pub(super) const fn new() -> Grace {
        Grace::with_readers([Readers::new(), Readers::new()])
    }

    pub(super) fn with_source(source: Source) -> Result<Grace, SourceError> {
        Ok(Grace::with_readers([Readers::with_source(source)?, Readers::with_source(source)?]))
    }

    const fn with_readers(readers: [Readers; 2]) -> Grace {
        let periods = Periods { begun: 0, ended: 0, running: false, waiting: 0 };
        let periods = Mutex::new(periods);
        // Not as a part of a tuple, which has a destructor where a `Condvar` has one.
        Grace { phase: AtomicUsize::new(FENCED), readers, periods, end: Condvar::new() }
    }

    /// Counts a reader, and returns the parity of its number.
    #[inline(always)]
    pub(super) fn enter(&self) -> usize {
        let phase = self.phase.load(Relaxed);
        self.readers[phase & PARITY].enter();
        // This is `fence::light`, if no more is needed.
        compiler_fence(SeqCst);
        if phase & FENCED != 0 {
            self.fence();
        }
        phase & PARITY
    }

    #[cold]
    #[inline(never)]
    fn fence(&self) {
        fence::light();
        if fence::is_asymmetric() {
            self.phase.fetch_and(!FENCED, Relaxed);
        }
    }

    /// Counts a reader no more.
    #[inline(always)]
    pub(super) fn leave(&self, parity: usize) {
        self.readers[parity & PARITY].leave();
    }

    /// Returns about how many readers are inside.
    pub(super) fn reader_count(&self) -> usize {
        let sum: i32 = self.readers.iter().map(Readers::estimate).sum();
        usize::try_from(sum).unwrap_or(0)
    }

    /// Waits until a grace period has ended that began after the call did.
    ///
    /// # Errors
    ///
    /// The fence is refused: nothing is known about the readers.
    pub(super) fn wait(&self) -> Result<(), Unfenced> {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        let needed = periods.begun + 1;
        while periods.ended < needed {
            if periods.running {
                periods.waiting += 1;
                periods = self.end.wait(periods).unwrap_or_else(PoisonError::into_inner);
                periods.waiting -= 1;
                continue;
            }
            periods.running = true;
            periods.begun += 1;
            drop(periods);
            let result = self.run();
            periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
            periods.running = false;
            if result.is_ok() {
                periods.ended = periods.begun;
            }
            self.end.notify_all();
            result?;
        }
        Ok(())
    }

    /// Returns `true` if a grace period runs, and the number of threads that wait for its end.
    #[cfg(test)]
    pub(super) fn running(&self) -> (bool, usize) {
        let periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        (periods.running, periods.waiting)
    }

    /// Returns the parity of the phase.
    #[cfg(test)]
    pub(super) fn parity(&self) -> usize {
        self.phase.load(Relaxed) & PARITY
    }

    /// Runs a grace period, as the only thread that does.
    fn run(&self) -> Result<(), Unfenced> {
        fence::all()?;
        let old = self.phase.load(Relaxed) & PARITY;
        self.wait_for_none(1 - old);
        self.phase.fetch_xor(PARITY, Relaxed);
        self.wait_for_none(old);
        Ok(())
    }

    fn wait_for_none(&self, parity: usize) {
        let (mut looks, [mut pause, longest]) = (0, PAUSES);
        while !self.readers[parity].none() {
            looks += 1;
            if looks < LOOKS {
                thread::yield_now();
            } else {
                thread::sleep(pause);
                pause = longest.min(pause * 2);
            }
        }
    }
}
