//! Waiting for a state, whenever it comes.

use std::time::{Duration, Instant};

/// Waits until something is so: longer than it takes on any machine.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(600), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
