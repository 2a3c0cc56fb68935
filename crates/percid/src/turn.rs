//! Taking turns: visitors of the copies of all IDs come one after the other.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::sys::process;

/// Waiting for a thread that owns a copy: it is nearly always running and soon done.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    rounds: u32,
}

impl Patience {
    /// Whether it has waited for so long, about a second, that nobody who is alive would take that long for
    /// a few instructions.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.rounds > 200 + 10_000
    }

    pub(crate) fn wait(&mut self) {
        self.rounds += 1;
        match self.rounds {
            0..=100 => std::hint::spin_loop(),
            101..=200 => std::thread::yield_now(),
            _ => std::thread::sleep(std::time::Duration::from_micros(50)),
        }
    }
}

/// Whose turn it is to visit a structure.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The visitor's thread number; 0 for nobody.
    thread: AtomicU32,
}

impl Turn {
    pub(crate) const fn new() -> Turn {
        Turn { thread: AtomicU32::new(0) }
    }

    /// Waits for the visitors before; `None` if the calling thread is itself the visitor, further up its
    /// stack. A visitor that was another thread of the parent, at the time of a fork, is not waited for.
    pub(crate) fn wait(&self) -> Option<Taken<'_>> {
        let me = process::thread_id();
        let mut patience = Patience::default();
        loop {
            let visitor = match self.thread.compare_exchange(0, me, Acquire, Relaxed) {
                Ok(_) => return Some(Taken(self)),
                Err(visitor) if visitor == me => return None,
                Err(visitor) => visitor,
            };
            patience.wait();
            if patience.rounds > 200 && !process::has_thread(visitor) {
                let _ = self.thread.compare_exchange(visitor, 0, Acquire, Relaxed);
            }
        }
    }
}

/// The turn, taken; over when dropped.
#[derive(Debug)]
pub(crate) struct Taken<'t>(&'t Turn);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.thread.store(0, Release);
    }
}
