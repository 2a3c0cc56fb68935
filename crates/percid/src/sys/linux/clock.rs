//! Time for the slow paths: a coarse monotonic clock, and sleeping.

use super::raw_call::raw_call;

/// Returns the milliseconds since an arbitrary start, at the resolution of the scheduler tick (1 to
/// 10 ms).
///
/// The cost is one vDSO call and no system call.
pub(crate) fn now_ms() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Sleeps for `nanoseconds`, less than a second, or until a signal handler has run. Returns how
/// many times that time has passed, for callers that count: about once.
///
/// It uses a raw call: the C library's wrappers are cancellation points, and a cancelled thread
/// would never release what a waiting thread holds.
pub(crate) fn sleep(nanoseconds: i64) -> u32 {
    // Miri does not support raw calls.
    // #[gamma::skip(reason = "of Miri")]
    if cfg!(miri) {
        std::thread::yield_now();
        return 1;
    }
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let place = (&raw const time).expose_provenance();
    // SAFETY: the call reads the time, and writes nothing because the second pointer is null.
    unsafe { raw_call(libc::SYS_nanosleep, [place, 0, 0, 0]) };
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn it_counts_milliseconds_of_the_monotonic_clock() {
        let exact = || {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is a valid place for the result.
            unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
            std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_millis() as u64
        };
        // The clock advances by ticks, so it may be late by some, and never early.
        let before = exact();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let now = now_ms();
        assert!(before.saturating_sub(1000) <= now && now <= exact(), "{before} {now}");
        assert!((0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            now_ms() > now
        }));
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_sleep_lasts_as_long_as_it_is_told() {
        let before = std::time::Instant::now();
        sleep(20_000_000);
        assert!(before.elapsed() >= std::time::Duration::from_millis(20));
    }

    /// A thread with a pending cancellation survives a sleep of percid's, and not one of the C
    /// library.
    #[test]
    #[cfg_attr(miri, ignore = "Miri cancels no threads")]
    fn a_sleep_is_no_cancellation_point() {
        use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
        unsafe extern "C" {
            safe fn pthread_testcancel();
        }
        static REACHED: AtomicU32 = AtomicU32::new(0);
        static DUE: AtomicU32 = AtomicU32::new(0);
        extern "C-unwind" fn sleeper(_: *mut libc::c_void) -> *mut libc::c_void {
            while DUE.load(SeqCst) == 0 {
                std::hint::spin_loop();
            }
            sleep(1_000_000);
            REACHED.store(1, SeqCst);
            pthread_testcancel();
            REACHED.store(2, SeqCst);
            std::ptr::null_mut()
        }
        // SAFETY: the entry holds nothing that unwinding would have to release.
        unsafe {
            let entry: extern "C-unwind" fn(*mut libc::c_void) -> *mut libc::c_void = sleeper;
            let entry: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void =
                std::mem::transmute(entry);
            let mut thread = 0;
            let none = std::ptr::null_mut();
            assert_eq!(libc::pthread_create(&mut thread, std::ptr::null(), entry, none), 0);
            assert_eq!(libc::pthread_cancel(thread), 0);
            DUE.store(1, SeqCst);
            assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
        }
        assert_eq!(REACHED.load(SeqCst), 1);
    }
}
