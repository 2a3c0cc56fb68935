//! Waiting for a thread that is nearly always running and soon finished: spin, then yield, then
//! sleep.

use std::hint;
use std::thread;

use crate::sys::clock;

/// Rounds without a sleep.
const AWAKE: u32 = 200;

/// Rounds of about 50 us each before the waiting is exhausted.
const ASLEEP: u32 = 10_000;

/// The time that a thread has waited so far, in rounds.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    rounds: u32,
}

impl Backoff {
    pub(crate) fn wait(&mut self) {
        #[cfg(test)]
        crate::sys::steps::at(crate::sys::steps::Step::Wait);
        let rounds = match self.rounds {
            0..100 => {
                hint::spin_loop();
                1
            }
            100..AWAKE => {
                thread::yield_now();
                1
            }
            _ => clock::sleep(50_000),
        };
        self.rounds = self.rounds.saturating_add(rounds);
    }

    /// Returns `true` if the thread has begun to sleep: it has time to ask the kernel about the
    /// other thread.
    pub(crate) fn is_sleeping(&self) -> bool {
        self.rounds > AWAKE
    }

    /// Returns `true` if the thread has waited for about a second: no living thread takes that long
    /// for a few instructions.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.rounds > AWAKE + ASLEEP
    }
}
