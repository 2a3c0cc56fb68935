//! The threads that simulate: a pool for each process. The child of a `fork` has its parent's pool
//! without the threads, and would wait for them without end.

use std::process;
use std::sync::{Arc, Mutex};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool of the process that asked last, and its number.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Runs `work` on the threads of this process, or on the caller's if there can be no others.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

fn pool() -> Option<Arc<ThreadPool>> {
    let made = || ThreadPoolBuilder::new().build().ok().map(Arc::new);
    // Who has the lock may be a thread of the parent, and not be there: no waiting.
    let Ok(mut known) = POOL.try_lock() else { return made() };
    if let Some((process, pool)) = &*known
        && *process == process::id()
    {
        return Some(Arc::clone(pool));
    }
    let pool = made()?;
    let of_parent = known.replace((process::id(), Arc::clone(&pool)));
    // It would be told to end, by locks that threads of the parent may have had.
    std::mem::forget(of_parent);
    Some(pool)
}
