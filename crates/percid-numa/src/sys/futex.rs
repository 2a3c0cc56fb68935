//! Sleeping until a word changes, also across processes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while the word has this value, until [`wake`] or for this time; may return early.
pub(crate) fn wait(word: &AtomicU32, value: u32, time: Option<Duration>) {
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: time.subsec_nanos() as _,
    });
    let limit = time.as_ref().map_or(std::ptr::null(), |time| time as *const libc::timespec);
    // SAFETY: the word and the time outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, limit) };
}

/// Wakes all threads that sleep on the word, of all processes.
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the call uses the address only as a key.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Instant;

    #[test]
    fn a_sleeper_wakes_at_a_change_or_in_time() {
        let word = AtomicU32::new(1);
        let began = Instant::now();
        wait(&word, 1, Some(Duration::from_millis(20)));
        assert!(began.elapsed() >= Duration::from_millis(20));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while word.load(SeqCst) == 1 {
                    wait(&word, 1, None);
                }
            });
            std::thread::sleep(Duration::from_millis(20));
            word.store(2, SeqCst);
            wake(&word);
        });
    }
}
