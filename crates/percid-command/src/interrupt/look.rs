//! Sleeping in pieces: if the system has no `ppoll`, a sleeping thread regularly checks for the
//! signal.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time until Ctrl-C is detected.
const PIECE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Wake;

impl Wake {
    pub(super) fn new() -> io::Result<Wake> {
        Ok(Wake)
    }

    /// Does nothing: the flag suffices.
    pub(super) fn by(&self, _signal: i32) -> io::Result<()> {
        Ok(())
    }

    /// Sleeps for a time, or until a signal has arrived.
    pub(super) fn sleep(&self, duration: Duration, come: &AtomicBool) {
        let end = Instant::now() + duration;
        while !come.load(Relaxed) {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            thread::sleep(rest.min(PIECE));
        }
    }
}
