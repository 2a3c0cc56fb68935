//! Threads that nobody joins, each of which counts and ends.
//!
//! Where the C library lets such a thread unmap its own stack (musl), an rseq area left behind in it would
//! be written to by the kernel, and kill the process.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use percid::Counter;

use crate::Verdict;
use crate::options::Options;

static COUNTER: Counter = Counter::new();
static ENDED: AtomicI64 = AtomicI64::new(0);

const THREADS: i64 = 20_000;

/// How many may run at a time.
const AT_ONCE: i64 = 16;

pub(crate) fn run(_: &Options) -> Verdict {
    for started in 0..THREADS {
        while started - ENDED.load(Relaxed) >= AT_ONCE {
            std::thread::sleep(Duration::from_micros(20));
        }
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(|| {
            (0..100).for_each(|_| COUNTER.add(1));
            ENDED.fetch_add(1, Relaxed);
        });
        // Dropping the handle detaches the thread.
        drop(thread.map_err(|error| error.to_string())?);
    }
    while ENDED.load(Relaxed) < THREADS {
        std::thread::sleep(Duration::from_millis(1));
    }
    let sum = COUNTER.sum();
    let figures = format!("source={} threads={THREADS} sum={sum}", percid::init().source);
    if sum == THREADS * 100 { Ok(figures) } else { Err(figures) }
}
