//! Detection of kernels for which a missing report of a thread's ID means that it has not changed.
//!
//! Up to Linux 6.18 a thread reports its ID (`rseq:rseq_update`) whenever it goes back to user
//! space after it was preempted or moved, the same or not. From 6.19 on it reports the ID when ID
//! or CPU have changed, and no report means unchanged. The trace itself shows which of the two it
//! is, whatever its kernel is called: with the older ones most IDs are reported again.

use std::collections::HashMap;

use crate::event::{Event, Tid, What};

/// IDs without which it cannot be said: then silence means nothing.
const MIN_IDS: usize = 20;

/// If only changes are reported, one in this number may be the same as before: the first ID of a
/// new program.
const SAME_OF: usize = 10;

/// Returns `true` if the kernel reports changes only.
pub(super) fn tells_changes_only(events: &[Event]) -> bool {
    let mut last: HashMap<Tid, (u32, u32)> = HashMap::new();
    let (mut told, mut same) = (0, 0);
    for &Event { cpu, what, .. } in events {
        match what {
            What::Id { thread, id, .. } => {
                told += 1;
                same += usize::from(last.insert(thread, (cpu, id)) == Some((cpu, id)));
            }
            What::Exec { thread, .. } | What::Exit { thread } => drop(last.remove(&thread)),
            _ => {}
        }
    }
    told >= MIN_IDS && same * SAME_OF <= told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(ids: impl IntoIterator<Item = (u32, u32)>) -> Vec<Event> {
        let event = |(time, (cpu, id)): (u64, (u32, u32))| Event {
            time,
            cpu,
            what: What::Id { thread: 7, node: 0, id },
        };
        (0..).zip(ids).map(event).collect()
    }

    #[test]
    fn a_kernel_that_tells_the_same_again_tells_always() {
        assert!(!tells_changes_only(&trace((0..40).map(|nr| (0, nr / 10)))));
    }

    #[test]
    fn a_kernel_that_never_tells_the_same_again_tells_changes() {
        assert!(tells_changes_only(&trace((0..40).map(|nr| (nr % 2, 3)))));
        assert!(!tells_changes_only(&trace((0..4).map(|nr| (nr % 2, 3)))), "too few to tell");
    }
}
