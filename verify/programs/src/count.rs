//! Counts to a million with several threads and reports the source, optionally in a sandbox that
//! denies system calls.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use percid::Counter;

use crate::options::Options;
use crate::sandbox;
use crate::verdict::Verdict;

static COUNTER: Counter = Counter::new();

/// A value of `errno` that no call of the library leaves behind.
pub(crate) const ERRNO: i32 = 4242;

pub(crate) fn errno() -> i32 {
    // SAFETY: the C library's pointer to the calling thread's own errno.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(value: i32) {
    // SAFETY: the C library returns a valid pointer to the calling thread's own errno.
    unsafe { *libc::__errno_location() = value };
}

pub(crate) fn run(options: &Options) -> Verdict {
    if !options.deny.is_empty() && !options.confined {
        // The sandbox must be there before the C library starts, so the program starts over in it.
        return Err(sandbox::start_over(options));
    }
    // The first use happens in a thread, then in the main thread.
    let changed = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250_000 {
                    set_errno(ERRNO);
                    COUNTER.add(1);
                    changed.fetch_add(u32::from(errno() != ERRNO), Relaxed);
                }
            });
        }
    });
    if changed.load(Relaxed) > 0 {
        return Err("an increment changed errno".to_owned());
    }
    let choice = percid::init();
    let sum = COUNTER.sum();
    if sum != 1_000_000 {
        return Err(format!("source={} sum={sum} instead of 1000000", choice.source));
    }
    let reason = choice.reason.to_string();
    let elevated = elevated();
    Ok(format!("source={} reason={reason:?} sum={sum} elevated={elevated}", choice.source))
}

/// Returns `true` if the program has rights that its caller does not have.
fn elevated() -> bool {
    // SAFETY: the call takes a number.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
