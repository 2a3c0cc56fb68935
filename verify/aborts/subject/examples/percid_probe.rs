//! The probe as a shared library.

#[path = "../src/exercise.rs"]
mod exercise;

static STATIC: exercise::Exercise = exercise::Exercise::new();

/// Uses every structure `times` times.
#[unsafe(no_mangle)]
pub extern "C" fn percid_probe_work(times: u64) {
    STATIC.work(times);
}

/// How often they were used so far, by all threads; negative if they do not agree. To be called
/// when no thread is at work.
#[unsafe(no_mangle)]
pub extern "C" fn percid_probe_total() -> i64 {
    STATIC.total().unwrap_or(-1)
}
