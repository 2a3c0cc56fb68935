//! Costs of NUMA balancing for a process, and the moves of its pages, if a trace has the probes.
//! Also, the decisions of percid's balancer about the same accesses.

use std::collections::{BTreeMap, HashMap};

use percid_rules::scan::migration_policy::{Context, PageAccess, PageHistory, decide};

use crate::event::Tid;
use crate::numa::{Event, MigrateReason, What};

/// Bytes of a page: a huge page counts as those of its parts that were used.
const PAGE: u64 = 4096;

/// Costs and effects of balancing for a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Costs {
    /// The passes, also those that found out that none was due.
    pub passes: Times,
    /// The hint faults, with the moves of their pages.
    pub hint_faults: Times,
    /// Pages that were seen being used.
    pub pages: u64,
    /// Number of these pages that more than one thread was seen to use.
    pub pages_of_several_threads: u64,
    /// Moves of pages to the threads that used them.
    pub moves: u64,
    /// Moves of pages that had been moved before in the trace.
    pub moves_again: u64,
    /// Accesses by the nodes of the threads, with the pages where the kernel had them; empty if the
    /// trace does not contain nodes.
    pub by_node: BTreeMap<u32, Placed>,
    /// All of these accesses, with the pages where percid's balancer would have had them by its rules.
    pub percid: Placed,
    /// Moves by these rules.
    pub percid_moves: u64,
}

/// Number of accesses that found their page on their own node, before it was moved for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placed {
    /// The accesses.
    pub accesses: u64,
    /// Accesses to pages of the thread's node.
    pub local: u64,
}

impl Placed {
    fn add(&mut self, is_local: bool) {
        self.accesses += 1;
        self.local += u64::from(is_local);
    }
}

/// Durations of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Number of times that it was recorded with a duration.
    pub count: u64,
    /// Total time, in nanoseconds.
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

/// The recorded accesses of a page.
struct PageRecord {
    user: Tid,
    has_several: bool,
    was_moved: bool,
    /// Accesses whose node is known.
    accesses: i64,
    /// The history that percid's balancer would have, and the node where it would have the page.
    history: PageHistory,
    home: u32,
}

/// Node of a page before the kernel moved it for a hint fault, if it was moved from a node that is
/// not known. No thread runs on this node.
const ELSEWHERE: u32 = u32::MAX;

/// An access, and the node of the page before it.
#[derive(Clone, Copy)]
struct Access {
    by: PageAccess,
    before: u32,
}

/// Computes the costs from the events of one process, in their order; `nodes` has the node of each
/// CPU.
pub(super) fn costs(events: &[&Event], nodes: &[u32]) -> Costs {
    let mut costs = Costs::default();
    let mut pages: BTreeMap<u64, PageRecord> = BTreeMap::new();
    let mut uses: HashMap<u32, u64> = HashMap::new();
    // Pages moved for each thread, and the time. The hint, which comes last in a fault, names the
    // page. A fault that went to another CPU has no hint.
    let mut moving: HashMap<Tid, (u64, u64)> = HashMap::new();
    for event in events {
        match event.what {
            What::Pass { took: Some(took), .. } => costs.passes.add(took),
            What::Migrated { moved, reason: MigrateReason::NUMA_MISPLACED, .. } => {
                costs.moves += moved;
                moving.insert(event.thread, (event.time, moved));
            }
            What::Hint { address, took, node } => {
                took.into_iter().for_each(|took| costs.hint_faults.add(took));
                let began = took.map(|took| event.time.saturating_sub(took));
                let is_of_this = |&(at, _): &(u64, u64)| began.is_none_or(|began| at >= began);
                let moved = moving.remove(&event.thread).filter(is_of_this);
                let moved = moved.map_or(0, |(_, moved)| moved);
                let page = pages.entry(address / PAGE).or_insert(PageRecord::new(event.thread));
                page.has_several |= page.user != event.thread;
                if moved > 0 {
                    costs.moves_again += if page.was_moved { moved } else { 0 };
                    page.was_moved = true;
                }
                let Some((&by, after)) = nodes.get(event.cpu as usize).zip(node) else { continue };
                let by = PageAccess { thread: event.thread, node: by };
                let before = if moved > 0 { ELSEWHERE } else { after };
                costs.note(page, Access { by, before }, &mut uses);
            }
            _ => {}
        }
    }
    costs.pages = pages.len() as u64;
    costs.pages_of_several_threads = pages.values().filter(|page| page.has_several).count() as u64;
    costs
}

impl PageRecord {
    fn new(user: Tid) -> PageRecord {
        let (accesses, history, home) = (0, PageHistory::default(), ELSEWHERE);
        PageRecord { user, has_several: false, was_moved: false, accesses, history, home }
    }
}

impl Costs {
    /// All accesses whose nodes are known, with the pages where the kernel had them.
    pub fn kernel(&self) -> Placed {
        let sum = |of: fn(&Placed) -> u64| self.by_node.values().map(of).sum();
        Placed { accesses: sum(|placed| placed.accesses), local: sum(|placed| placed.local) }
    }

    /// An access under both: the kernel's moves are in the trace, percid's follow from its rules. Both
    /// begin where the kernel had the page at its first access. A page is armed once in a sequence
    /// or so, so its accesses count the sequences; a node's use is that of the whole process.
    fn note(&mut self, page: &mut PageRecord, access: Access, uses: &mut HashMap<u32, u64>) {
        let node = access.by.node;
        self.by_node.entry(node).or_default().add(access.before == node);
        if page.accesses == 0 {
            page.home = access.before;
        }
        page.accesses += 1;
        *uses.entry(node).or_default() += 1;
        let at = Context {
            home: page.home,
            sequence: page.accesses,
            use_there: uses[&node],
            use_here: uses.get(&page.home).copied().unwrap_or(0),
            has_memory: true,
            backoff: true,
            doubtful: false,
        };
        let decision = decide(page.history, access.by, &at);
        self.percid.add(decision.local);
        page.history = decision.history;
        if decision.moves {
            self.percid_moves += 1;
            (page.home, page.history) = (node, page.history.moved());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs_of(what: &[(Tid, What)]) -> Costs {
        costs_on(&[], &what.iter().map(|&(thread, what)| (0, thread, what)).collect::<Vec<_>>())
    }

    fn costs_on(nodes: &[u32], what: &[(u32, Tid, What)]) -> Costs {
        let event = |(time, &(cpu, thread, what))| Event { time, cpu, thread, what };
        let events: Vec<Event> = (0..).zip(what).map(event).collect();
        costs(&events.iter().collect::<Vec<_>>(), nodes)
    }

    fn hint(address: u64, took: Option<u64>) -> What {
        What::Hint { address, took, node: None }
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
        let Costs { passes, hint_faults, .. } = costs_of(&seen);
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
        let Costs { pages, pages_of_several_threads, moves, moves_again, .. } = costs_of(&seen);
        assert_eq!((pages, pages_of_several_threads), (3, 1));
        assert_eq!((moves, moves_again), (3, 1));
    }

    /// The fault of the first move went to another CPU: its page is not known, and is not the next one.
    #[test]
    fn a_move_whose_page_is_not_known_is_nobodys() {
        let of_move = |took| {
            let what = [(1, MOVED), (1, hint(0, Some(took))), (1, MOVED), (1, hint(0, Some(1)))];
            costs_of(&what)
        };
        assert_eq!((of_move(0).moves, of_move(0).moves_again), (2, 0));
        assert_eq!((of_move(1).moves, of_move(1).moves_again), (2, 1), "the control");
    }

    #[test]
    fn moves_for_other_reasons_are_not_balancings() {
        let other = What::Migrated { moved: 1, failed: 0, reason: MigrateReason::OTHER };
        assert_eq!(costs_of(&[(1, other), (1, hint(0, None))]).moves, 0);
    }

    /// Thread 1 runs on node 0 and thread 2 on node 1. The kernel moves a page at the second access
    /// of thread 2, and so do percid's rules, as the page has a history by then. If both threads
    /// use a page in turns, the kernel moves it each time, percid rarely.
    #[test]
    fn percids_rules_decide_about_the_same_accesses() {
        let at = |node| What::Hint { address: 0, took: None, node: Some(node) };
        let nodes = [0, 1];
        let own: Vec<_> = (0..5).map(|_| (0, 1, at(0))).collect();
        let taken = [(1, 2, at(0)), (1, 2, MOVED), (1, 2, at(1)), (1, 2, at(1))];
        let all = [own, taken.to_vec()].concat();
        let costs = costs_on(&nodes, &all);
        assert_eq!(costs.kernel(), Placed { accesses: 8, local: 6 });
        assert_eq!((costs.percid, costs.percid_moves, costs.moves), (costs.kernel(), 1, 1));
        let of_node = |node| costs.by_node[&node];
        assert_eq!(of_node(0), Placed { accesses: 5, local: 5 });
        assert_eq!(of_node(1), Placed { accesses: 3, local: 1 });

        let turns = |turn: u32| [(turn % 2, turn % 2, MOVED), (turn % 2, turn % 2, at(turn % 2))];
        let shared = costs_on(&nodes, &(0..40).flat_map(turns).collect::<Vec<_>>());
        assert_eq!((shared.moves, shared.moves_again), (40, 39));
        assert_eq!(shared.kernel(), Placed { accesses: 40, local: 0 });
        assert!(shared.percid_moves < 5 && shared.percid.local >= 18, "{shared:?}");
        // The control: a trace that does not tell nodes says nothing of either.
        let blind = costs_on(&[], &all);
        assert_eq!((blind.kernel(), blind.percid_moves), (Placed::default(), 0));
        assert!(blind.by_node.is_empty());
    }
}
