//! Waiting for a state.

use std::time::{Duration, Instant};

/// Waits until `is_so` returns `true`. The timeout is longer than this takes on any machine.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(600), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
