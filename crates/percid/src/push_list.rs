//! Lists that only grow: a node that was pushed is never removed or moved.

use crate::sys::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// Makes `node`, to which no other thread has access, the first of a list. `link` stores the next
/// node, and is called again if another thread has pushed in between.
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

/// Returns the node that was pushed last; null if there is none. Acquire: all nodes are seen as
/// they were pushed, because an exchange continues the release sequence of the earlier ones.
pub(crate) fn first<N>(first: &AtomicPtr<N>) -> *mut N {
    first.load(Acquire)
}
