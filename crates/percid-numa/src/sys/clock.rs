//! The time, and the run time of threads and of the process.

use std::time::Duration;

/// Returns the time since a fixed moment before the process began, with a resolution of some
/// milliseconds. Does not enter the kernel on most machines. Async-signal-safe.
pub(crate) fn since_boot() -> Duration {
    read(libc::CLOCK_MONOTONIC_COARSE).unwrap_or_default()
}

/// Returns the run time of the calling thread so far. One system call.
pub(crate) fn own_run_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// Returns the total run time of all threads of this process so far. One system call, which visits
/// every thread.
pub(crate) fn process_run_time() -> Duration {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default()
}

/// Returns the run time of a thread of this process so far; `None` if there is no such thread. One
/// system call.
pub(crate) fn run_time(thread: u32) -> Option<Duration> {
    // The clock of a thread's run time in nanoseconds (`linux/posix-timers.h`, and
    // clock_getcpuclockid(3)): the complement of its number, and three bits for "this thread, as
    // scheduled".
    read((!(thread as libc::clockid_t) << 3) | 0b110)
}

fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    let done = unsafe { libc::clock_gettime(clock, &mut time) };
    (done == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_time_passes_while_a_thread_runs() {
        let me = crate::sys::process::thread_id();
        let before = run_time(me).expect("this thread");
        while run_time(me).expect("this thread") < before + Duration::from_millis(2) {}
        // Larger than the largest number that Linux gives to a thread, 2^22.
        assert_eq!(run_time(1 << 23), None);
    }
}
