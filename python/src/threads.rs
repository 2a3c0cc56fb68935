//! The threads that simulate: a pool for each process. A child of `fork` has its parent's pool
//! without the threads, and would wait for them forever.

use std::process;
use std::sync::{Arc, Mutex};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool of the process that used it last, and the number of that process.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Runs `work` on the threads of this process, or on the calling thread if no pool can be created.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Runs `work` on one thread.
pub(crate) fn run_alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

fn pool() -> Option<Arc<ThreadPool>> {
    let made = || ThreadPoolBuilder::new().build().ok().map(Arc::new);
    // Do not wait: the owner of the lock may be a thread of the parent that does not exist here.
    let Ok(mut known) = POOL.try_lock() else { return made() };
    if let Some((process, pool)) = &*known
        && *process == process::id()
    {
        return Some(Arc::clone(pool));
    }
    let pool = made()?;
    let of_parent = known.replace((process::id(), Arc::clone(&pool)));
    // Dropping the parent's pool would use locks that threads of the parent may have held.
    std::mem::forget(of_parent);
    Some(pool)
}
