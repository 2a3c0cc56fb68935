//! Lists that only grow: what was pushed is never taken out, and stays where it is.

use crate::sys::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// Makes `node`, which no other thread knows, the first of a list. `link` stores what comes after
/// it, and is called again if another thread has pushed in between.
pub(crate) fn push<N>(first: &AtomicPtr<N>, node: *mut N, mut link: impl FnMut(*mut N)) {
    let mut next = first.load(Relaxed);
    loop {
        link(next);
        match first.compare_exchange_weak(next, node, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => next = now,
        }
    }
}

/// The node that was pushed last; null if there is none. Acquire: all nodes are seen as they were
/// pushed, because an exchange passes on what those before it released.
pub(crate) fn first<N>(first: &AtomicPtr<N>) -> *mut N {
    first.load(Acquire)
}
