//! Hooks for percid's own tests. Not for programs: they break guarantees of the library.

use std::sync::atomic::Ordering::Relaxed;

use crate::sys::nodes;

/// Pretends that `count` nodes have memory, and that CPU `c` is on node `c` modulo `count`. Must be
/// called before a balancer is made.
pub fn pretend_nodes(count: u32) {
    nodes::PRETENDED.store(count, Relaxed);
}
