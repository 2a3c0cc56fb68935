//! The probe as a shared library.

#[path = "../src/exercise.rs"]
mod exercise;

static STATIC: exercise::Exercise = exercise::Exercise::new();

/// Uses every structure `times` times.
#[unsafe(no_mangle)]
pub extern "C" fn percid_probe_work(times: u64) {
    STATIC.work(times);
}

/// Returns the number of uses so far, by all threads; negative if the structures disagree. Must be
/// called when no thread uses them.
#[unsafe(no_mangle)]
pub extern "C" fn percid_probe_total() -> i64 {
    STATIC.total().unwrap_or(-1)
}
