//! The probe as a shared library: one function that counts.

use percid::Counter;

static STATIC: Counter = Counter::new();

/// Adds 1 `times` times; answers the sum so far, of all threads.
#[unsafe(no_mangle)]
pub extern "C" fn percid_probe_count(times: i64) -> i64 {
    (0..times).for_each(|_| STATIC.add(1));
    STATIC.sum()
}
