//! What NUMA balancing cost a process, and what it did with its pages, as far as a trace has the
//! probes.

use std::collections::{BTreeMap, HashMap};

use crate::event::Tid;
use crate::numa::{Event, MigrateReason, What};

/// Bytes of a page: a huge page counts as those of its parts that were used.
const PAGE: u64 = 4096;

/// What balancing did to a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// The passes, also those that found out that none was due.
    pub passes: Times,
    /// The hint faults, with the moves of their pages.
    pub hint_faults: Times,
    /// Pages that were seen being used.
    pub pages: u64,
    /// Those of them that more than one thread was seen to use.
    pub pages_of_several_threads: u64,
    /// Moves of pages to the threads that used them.
    pub moves: u64,
    /// Moves of pages that had been moved before in the trace.
    pub moves_again: u64,
}

/// How long something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// How often it was seen, and timed.
    pub count: u64,
    /// In all, in nanoseconds.
    pub total: u64,
    /// The longest time, in nanoseconds.
    pub longest: u64,
}

impl Times {
    fn add(&mut self, time: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(time);
        self.longest = self.longest.max(time);
    }
}

/// What was seen of a page.
struct Page {
    user: Tid,
    has_several: bool,
    was_moved: bool,
}

/// What the events of one process tell, in their order.
pub(super) fn costs(events: &[&Event]) -> Costs {
    let mut costs = Costs::default();
    let mut pages: BTreeMap<u64, Page> = BTreeMap::new();
    // Threads whose fault has moved something: the hint, which comes last in a fault, says what.
    let mut moving: HashMap<Tid, u64> = HashMap::new();
    for event in events {
        match event.what {
            What::Pass { took: Some(took), .. } => costs.passes.add(took),
            What::Migrated { moved, reason: MigrateReason::NUMA_MISPLACED, .. } => {
                *moving.entry(event.thread).or_default() += moved;
            }
            What::Hint { address, took } => {
                took.into_iter().for_each(|took| costs.hint_faults.add(took));
                let user = event.thread;
                let new = Page { user, has_several: false, was_moved: false };
                let page = pages.entry(address / PAGE).or_insert(new);
                page.has_several |= page.user != user;
                let moved = moving.remove(&user).unwrap_or(0);
                costs.moves += moved;
                if moved > 0 {
                    costs.moves_again += if page.was_moved { moved } else { 0 };
                    page.was_moved = true;
                }
            }
            _ => {}
        }
    }
    costs.pages = pages.len() as u64;
    costs.pages_of_several_threads = pages.values().filter(|page| page.has_several).count() as u64;
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(what: &[(Tid, What)]) -> Costs {
        let event = |(time, &(thread, what))| Event { time, cpu: 0, thread, what };
        let events: Vec<Event> = (0..).zip(what).map(event).collect();
        costs(&events.iter().collect::<Vec<_>>())
    }

    fn hint(address: u64, took: Option<u64>) -> What {
        What::Hint { address, took }
    }

    const MOVED: What =
        What::Migrated { moved: 1, failed: 0, reason: MigrateReason::NUMA_MISPLACED };

    #[test]
    fn times_are_added_as_far_as_they_are_known() {
        let pass = |took| What::Pass { ticks: 0, took };
        let seen = [
            (1, pass(Some(5))),
            (1, pass(None)),
            (2, pass(Some(9))),
            (1, hint(0, Some(3))),
            (1, hint(0, None)),
        ];
        let Costs { passes, hint_faults, .. } = of(&seen);
        assert_eq!(passes, Times { count: 2, total: 14, longest: 9 });
        assert_eq!(hint_faults, Times { count: 1, total: 3, longest: 3 });
    }

    /// A page of thread 1, one that thread 2 takes over, one that nobody moves.
    #[test]
    fn pages_know_their_users_and_whether_they_moved_before() {
        let seen = [
            (1, MOVED),
            (1, hint(4096, None)),
            (1, MOVED),
            (2, hint(9000, None)),
            (1, hint(8192, None)),
            (2, MOVED),
            (2, hint(8193, None)),
            (2, hint(1 << 40, None)),
        ];
        let Costs { pages, pages_of_several_threads, moves, moves_again, .. } = of(&seen);
        assert_eq!((pages, pages_of_several_threads), (3, 1));
        assert_eq!((moves, moves_again), (3, 1));
    }

    #[test]
    fn moves_for_other_reasons_are_not_balancings() {
        let other = What::Migrated { moved: 1, failed: 0, reason: MigrateReason::OTHER };
        assert_eq!(of(&[(1, other), (1, hint(0, None))]).moves, 0);
    }
}
