//! Signals during the first use of the library: choosing the source, registering, reserving memory,
//! claiming a counter. Each happens once per process, so many processes try at many moments.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use percid::Counter;

use crate::options::Options;
use crate::pinning;
use crate::random::{Random, seed};
use crate::verdict::Verdict;

static COUNTER: Counter = Counter::new();
static HANDLED: AtomicI64 = AtomicI64::new(0);

/// Number of processes that try.
const CHILDREN: usize = 400;

extern "C" fn handler(_: i32) {
    COUNTER.add(1);
    HANDLED.fetch_add(1, Relaxed);
}

pub(crate) fn run(_: &Options) -> Verdict {
    let seed = seed();
    let mut random = Random::new(seed, 0);
    pinning::handle(libc::SIGALRM, handler);
    let mut early = 0;
    for child in 0..CHILDREN {
        // From before the first instruction of the library to after the last of its first use.
        let delay_us = 1 + random.below(400);
        match one_child(delay_us) {
            Ok(interrupted) => early += usize::from(interrupted),
            Err(status) => {
                return Err(format!(
                    "seed={seed} child={child} delay={delay_us} us: status {status:#x}"
                ));
            }
        }
    }
    let figures = format!("seed={seed} children={CHILDREN} interrupted during first use={early}");
    if early > 0 { Ok(figures) } else { Err(format!("{figures}: nothing was tested")) }
}

/// Runs one child; whether the signal came before its first use was over.
fn one_child(delay_us: usize) -> Result<bool, i32> {
    // SAFETY: the parent has one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        0 => {
            let status = in_child(delay_us);
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(status) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, &mut status, 0) };
            match libc::WEXITSTATUS(status) {
                0 if libc::WIFEXITED(status) => Ok(false),
                10 if libc::WIFEXITED(status) => Ok(true),
                _ => Err(status),
            }
        }
    }
}

fn in_child(delay_us: usize) -> i32 {
    let interval = libc::timeval { tv_sec: 0, tv_usec: 20 };
    let first = libc::timeval { tv_sec: 0, tv_usec: delay_us as i64 };
    let timer = libc::itimerval { it_interval: interval, it_value: first };
    // SAFETY: the structure is valid; the signal's handler is installed.
    unsafe {
        // If something hangs, the kernel ends the child.
        let seconds = libc::rlimit { rlim_cur: 20, rlim_max: 20 };
        libc::setrlimit(libc::RLIMIT_CPU, &seconds);
        libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
    }
    COUNTER.add(1);
    let during_first_use = HANDLED.load(Relaxed) > 0;
    (1..20_000).for_each(|_| COUNTER.add(1));
    // SAFETY: an all-zero timer disarms it.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &std::mem::zeroed(), std::ptr::null_mut()) };
    let right = COUNTER.sum() == 20_000 + HANDLED.load(Relaxed);
    match (right, during_first_use) {
        (false, _) => 1,
        (true, true) => 10,
        (true, false) => 0,
    }
}
