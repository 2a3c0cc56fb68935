//! Threads that are not joined, each of which counts and ends, and counts while it ends.
//!
//! If the C library lets such a thread unmap its own stack (musl) with a registered rseq area in
//! it, the kernel would write to it, and kill the process. So percid ends its registration when the
//! keys of the thread are destroyed. Keys that are destroyed later must lose nothing either.

use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use percid::Counter;

use crate::options::Options;
use crate::verdict::Verdict;

static COUNTER: Counter = Counter::new();
static ENDED: AtomicI64 = AtomicI64::new(0);

const THREADS: i64 = 20_000;

/// Increments of a thread, and as many again while it ends.
const INCREMENTS: i64 = 100;

/// Maximum number of threads at a time.
const AT_ONCE: i64 = 16;

pub(crate) fn run(_: &Options) -> Verdict {
    // percid's key is made by the first use, so this one is destroyed later.
    COUNTER.add(0);
    let key = key()?;
    for started in 0..THREADS {
        while started - ENDED.load(Relaxed) >= AT_ONCE {
            std::thread::sleep(Duration::from_micros(20));
        }
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            (0..INCREMENTS).for_each(|_| COUNTER.add(1));
            // SAFETY: the key exists; any value but null makes the destructor run.
            unsafe { libc::pthread_setspecific(key, std::ptr::dangling::<c_void>()) };
        });
        // Dropping the handle detaches the thread.
        drop(thread.map_err(|error| error.to_string())?);
    }
    while ENDED.load(Relaxed) < THREADS {
        std::thread::sleep(Duration::from_millis(1));
    }
    let sum = COUNTER.sum();
    let figures = format!("source={} threads={THREADS} sum={sum}", percid::init().source);
    if sum == THREADS * 2 * INCREMENTS { Ok(figures) } else { Err(figures) }
}

/// Makes a key whose destructor counts.
fn key() -> Result<libc::pthread_key_t, String> {
    let mut made = 0;
    // SAFETY: `made` is a valid place, and the destructor may run in any thread.
    match unsafe { libc::pthread_key_create(&mut made, Some(at_end)) } {
        0 => Ok(made),
        errno => Err(std::io::Error::from_raw_os_error(errno).to_string()),
    }
}

extern "C" fn at_end(_: *mut c_void) {
    (0..INCREMENTS).for_each(|_| COUNTER.add(1));
    ENDED.fetch_add(1, Relaxed);
}
