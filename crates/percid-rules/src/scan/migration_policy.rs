//! The decision to move a page to the node that uses it: the two-stage filter, private and shared
//! memory, and percid's own backoff.

use core::fmt;

/// Sequences in which one access suffices, because no page is placed well yet (published).
const EARLY: i64 = 4;

/// The ratio by which a node must use a region more than another node for shared pages to move to
/// it: 4 to 3, percid's own margin.
const MORE: (u64, u64) = (4, 3);

/// Consecutive accesses from one node that are needed to move a page, by the number of its earlier
/// moves; percid's own numbers.
///
/// A page is armed again soon during such a streak ([`Decision::look_again`]). So the longest takes
/// about a second, and a page that was moved often still follows a user that stays. Assume two
/// nodes, each of which accesses a page first with probability one half. They soon move it twice,
/// once more in about 500 scans, and then less than once in a hundred thousand.
const EVIDENCE: [u32; 4] = [2, 2, 8, 20];

/// Consecutive accesses from the page's own node after which one earlier move is forgotten, by the
/// number of those moves. Each is more than the number needed to move the page again: otherwise the
/// moves of memory that is shared by chance would be forgotten as fast as they happen.
const STAYED: [u32; 4] = [MAX_STREAK, 8, 20, MAX_STREAK];

/// Minimum streak in memory whose streaks often end with the second access: two accesses in a row
/// carry little information there.
const DOUBTFUL_EVIDENCE: u32 = 12;

/// Number of moves from which on a remote access carries no new information about the region: its
/// users are known to change.
const RESTLESS: u32 = 2;

/// Length of the longest streak that is recorded.
const MAX_STREAK: u32 = 31;

/// Thread numbers are stored modulo 2^14.
const THREAD_MASK: u32 = (1 << 14) - 1;
/// Node numbers: Linux has at most 1024 nodes.
const NODE_MASK: u32 = (1 << 10) - 1;

/// The recorded users of a page in one word; 0 if there are none.
///
/// | bits | contents |
/// |---|---|
/// | 0 to 9 | the node of the last observed thread |
/// | 10 to 23 | that thread, the lower bits of its number |
/// | 24 to 28 | consecutive accesses from that node, up to 31 |
/// | 29 to 30 | moves of the page, up to 3; decreases if it stays where it is used |
/// | 31 | set if any access was observed |
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PageHistory(u32);

impl PageHistory {
    const SEEN: u32 = 1 << 31;

    /// Returns the history that [`PageHistory::word`] encoded.
    pub fn from_word(word: u32) -> PageHistory {
        PageHistory(word)
    }

    /// Returns the history as one word, for example for an atomic.
    pub fn word(self) -> u32 {
        self.0
    }

    /// Returns the last observed node.
    pub fn node(self) -> Option<u32> {
        (self.0 & PageHistory::SEEN != 0).then_some(self.0 & NODE_MASK)
    }

    fn is_by(self, thread: u32) -> bool {
        self.0 & PageHistory::SEEN != 0 && self.0 >> 10 & THREAD_MASK == thread & THREAD_MASK
    }

    fn streak(self) -> u32 {
        self.0 >> 24 & MAX_STREAK
    }

    fn moves(self) -> u32 {
        self.0 >> 29 & 3
    }

    fn with_moves(self, moves: u32) -> PageHistory {
        PageHistory(self.0 & !(3 << 29) | moves << 29)
    }

    /// Records that the page was moved to the last observed node.
    pub fn moved(self) -> PageHistory {
        self.with_moves((self.moves() + 1).min(EVIDENCE.len() as u32 - 1))
    }

    /// Records that the page has stayed: forgets one move and restarts the streak at 1.
    fn stayed(self) -> PageHistory {
        match self.moves() {
            0 => self,
            moves => PageHistory(self.0 & !(MAX_STREAK << 24) | 1 << 24).with_moves(moves - 1),
        }
    }

    fn after(self, access: PageAccess) -> PageHistory {
        let again = self.node() == Some(access.node);
        let streak = if again { (self.streak() + 1).min(MAX_STREAK) } else { 1 };
        let (node, thread) = (access.node & NODE_MASK, access.thread & THREAD_MASK);
        let word = PageHistory::SEEN | streak << 24 | thread << 10 | node;
        PageHistory(word).with_moves(self.moves())
    }
}

impl fmt::Debug for PageHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, streak, moves) = (self.node(), self.streak(), self.moves());
        write!(f, "PageHistory({node:?}, {streak} in a row, moved {moves} times)")
    }
}

/// An access to an armed page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageAccess {
    /// The thread's number.
    pub thread: u32,
    /// The node of the CPU that ran the thread.
    pub node: u32,
}

/// The circumstances of an access.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// The node that the page is on.
    pub home: u32,
    /// The sequence of the scan.
    pub sequence: i64,
    /// Recent use of the region by the accessing node.
    pub use_there: u64,
    /// Recent use of the region by the page's node.
    pub use_here: u64,
    /// `true` if the accessing node has memory of its own.
    pub has_memory: bool,
    /// `true` if more evidence is required of pages that were moved before, and of doubtful ones.
    pub backoff: bool,
    /// `true` if second accesses to nearby pages often come from a different node than the first;
    /// see [`Decision::confirmed`].
    pub doubtful: bool,
}

/// The consequences of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// The history to store from now on.
    pub history: PageHistory,
    /// `true` if the page is on the accessing node.
    pub local: bool,
    /// `true` if the page was last accessed by the same thread, or by none.
    pub private: bool,
    /// `true` if the page must be moved to the accessing node.
    pub moves: bool,
    /// The time at which the page should be armed again.
    pub look_again: LookAgain,
    /// `true` if the access indicates that the region is used differently than before: the page
    /// moves, or would move if such accesses continued.
    pub change: bool,
    /// `Some` if the access before was a remote one that began a new streak: `true` if this access
    /// comes from the same node. It is often `false` in memory that several nodes share by chance.
    pub confirmed: Option<bool>,
}

/// The time at which a page should be armed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookAgain {
    /// In the next pass: the accesses so far suffice for a decision.
    WithPass,
    /// Soon: the next access decides.
    Soon,
    /// Soon, but not at once: several consecutive accesses must decide. Threads that share a CPU
    /// also access pages in streaks.
    Later,
}

/// Decides the consequences of an access, from the history of the page.
pub fn decide(before: PageHistory, access: PageAccess, at: &Context) -> Decision {
    let history = before.after(access);
    let local = access.node == at.home;
    let first = before.node().is_none();
    let same_thread = before.is_by(access.thread);
    let moved = if at.backoff { before.moves() as usize } else { 0 };
    let least = if at.backoff && at.doubtful { DOUBTFUL_EVIDENCE } else { 0 };
    let steady = history.streak() >= EVIDENCE[moved].max(least);
    let is_second = before.streak() == 1 && before.node() != Some(at.home);
    let confirmed = is_second.then_some(before.node() == Some(access.node));
    if local {
        let has_stayed = history.streak() >= STAYED[before.moves() as usize];
        let history = if has_stayed { history.stayed() } else { history };
        let private = first || same_thread;
        let (moves, look_again, change) = (false, LookAgain::WithPass, false);
        return Decision { history, local, private, moves, look_again, change, confirmed };
    }
    let private = first || same_thread;
    let early = at.sequence <= EARLY && moved == 0 && private;
    let wanted = steady && (same_thread || at.use_there * MORE.1 > at.use_here * MORE.0);
    let moves = at.has_memory && (early || wanted);
    let look_again = match history.streak() {
        _ if !at.has_memory || moves || steady => LookAgain::WithPass,
        1 => LookAgain::Soon,
        _ => LookAgain::Later,
    };
    let change = moves || at.has_memory && before.moves() < RESTLESS;
    Decision { history, local, private, moves, look_again, change, confirmed }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::println;
    use std::vec::Vec;

    use super::*;

    const LATE: Context = Context {
        home: 0,
        sequence: 9,
        use_there: 1,
        use_here: 1,
        has_memory: true,
        backoff: true,
        doubtful: false,
    };

    fn access_by(thread: u32, node: u32) -> PageAccess {
        PageAccess { thread, node }
    }

    /// Returns for each of these accesses `true` if the page moves after it.
    fn moves(accesses: &[PageAccess], at: Context) -> Vec<bool> {
        let mut record = PageHistory::default();
        let decide_next = |&access: &PageAccess| {
            let decision = decide(record, access, &at);
            record = decision.history;
            decision.moves
        };
        accesses.iter().map(decide_next).collect()
    }

    #[test]
    fn a_private_page_moves_at_once_when_early_and_at_the_second_look_later() {
        let early = Context { sequence: 4, ..LATE };
        assert_eq!(moves(&[access_by(7, 1)], early), [true]);
        assert_eq!(moves(&[access_by(7, 1), access_by(7, 1)], LATE), [false, true]);
    }

    #[test]
    fn an_early_page_moves_at_once_unless_it_is_shared_or_was_moved() {
        let early = Context { sequence: 4, ..LATE };
        let first = decide(PageHistory::default(), access_by(7, 1), &early);
        assert_eq!((first.moves, first.look_again), (true, LookAgain::WithPass));
        let used = PageHistory::default().after(access_by(7, 0));
        for (before, thread, moves) in [(used, 7, true), (used, 8, false), (used.moved(), 7, false)]
        {
            assert_eq!(
                decide(before, access_by(thread, 1), &early).moves,
                moves,
                "{before:?} {thread}"
            );
        }
        let unmoved = Context { backoff: false, ..early };
        assert!(decide(used.moved(), access_by(7, 1), &unmoved).moves);
    }

    #[test]
    fn a_local_access_speaks_for_no_change() {
        assert!(!decide(PageHistory::default(), access_by(7, 0), &LATE).change);
        assert!(decide(PageHistory::default(), access_by(7, 1), &LATE).change);
    }

    #[test]
    fn a_streak_is_counted_up_to_31() {
        let long = (0..40).fold(PageHistory::default(), |record, _| record.after(access_by(7, 3)));
        assert_eq!((long.streak(), long.moves()), (31, 0));
        let stayed = long.moved().moved().stayed();
        assert_eq!((stayed.streak(), stayed.moves(), stayed.node()), (1, 1, Some(3)));
    }

    #[test]
    fn the_filter_wants_one_node_twice() {
        let nodes = [access_by(7, 1), access_by(8, 2), access_by(7, 1), access_by(8, 2)];
        assert_eq!(moves(&nodes, LATE), [false; 4]);
        assert_eq!(moves(&[access_by(7, 0), access_by(7, 0)], LATE), [false; 2], "local");
    }

    #[test]
    fn a_shared_page_moves_only_to_who_uses_the_region_clearly_more() {
        let shared = [access_by(7, 1), access_by(8, 1)];
        assert_eq!(moves(&shared, Context { use_there: 4, use_here: 3, ..LATE }), [false; 2]);
        let more = Context { use_there: 5, use_here: 3, ..LATE };
        assert_eq!(moves(&shared, more), [false, true]);
    }

    #[test]
    fn a_node_without_memory_gets_no_page() {
        let none = Context { has_memory: false, sequence: 0, ..LATE };
        assert_eq!(moves(&[access_by(7, 1); 20], none), [false; 20]);
    }

    #[test]
    fn a_page_that_was_moved_needs_more_evidence_until_it_has_stayed() {
        let stay = |record: PageHistory, count: usize| {
            let home = Context { home: 1, ..LATE };
            (0..count).fold(record, |record, _| decide(record, access_by(7, 1), &home).history)
        };
        let needed = |mut record: PageHistory, at: Context| {
            let look = |_: &u32| {
                let decision = decide(record, access_by(9, 0), &at);
                record = decision.history;
                decision.moves
            };
            (1..40).find(look)
        };
        let fresh = stay(PageHistory::default(), 1);
        let there = Context { home: 1, ..LATE };
        assert_eq!(needed(fresh, there), Some(2));
        let moved = fresh.moved();
        assert_eq!(needed(moved, there), Some(2));
        assert_eq!(needed(moved.moved(), there), Some(8));
        assert_eq!(needed(moved.moved().moved(), there), Some(20));
        assert_eq!(needed(moved.moved(), Context { backoff: false, ..there }), Some(2));
        assert_eq!(needed(stay(moved.moved(), 20), there), Some(2), "it has stayed");
        assert_eq!(needed(stay(moved.moved(), 18), there), Some(8), "not for long enough");
        assert_eq!(needed(stay(moved.moved().moved(), 31), there), Some(8), "once less");
    }

    /// The first accessing node of a shared page is random here: with the backoff the page hardly
    /// moves.
    #[test]
    #[cfg_attr(miri, ignore = "200,000 looks take Miri minutes")]
    fn a_page_that_two_nodes_share_by_chance_hardly_moves() {
        let moves = |backoff: bool| {
            // Marsaglia's xorshift, with a fixed seed.
            let (mut lots, mut record, mut home, mut moves) = (1u64, PageHistory::default(), 0, 0);
            for _ in 0..100_000 {
                lots ^= lots << 13;
                lots ^= lots >> 7;
                lots ^= lots << 17;
                let node = (lots >> 20) as u32 & 1;
                let at = Context { home, backoff, ..LATE };
                let decision = decide(record, access_by(node, node), &at);
                record = decision.history;
                if decision.moves {
                    (home, record, moves) = (node, record.moved(), moves + 1);
                }
            }
            moves
        };
        let (without, with) = (moves(false), moves(true));
        println!("moves in 100000 looks: {without} without the backoff, {with} with it");
        assert!(without > 10_000 && with < 100, "{without}, {with}");
    }

    #[test]
    fn private_is_whom_nobody_was_before() {
        for home in [0, 1] {
            let at = Context { home, ..LATE };
            let first = decide(PageHistory::default(), access_by(7, 0), &at);
            assert_eq!((first.local, first.private), (home == 0, true), "the first");
            assert!(decide(first.history, access_by(7, 1), &at).private, "the same");
            assert!(!decide(first.history, access_by(8, 0), &at).private, "another one");
        }
    }

    #[test]
    fn nobody_is_not_thread_0() {
        assert!(!PageHistory::default().is_by(0));
        assert!(PageHistory::default().after(access_by(0, 0)).is_by(0));
    }

    #[test]
    fn a_page_that_has_stayed_is_counted_again_from_one() {
        let record =
            PageHistory::default().after(access_by(7, 3)).after(access_by(7, 3)).moved().moved();
        assert_eq!((record.streak(), record.moves()), (2, 2));
        let stayed = record.stayed();
        assert_eq!((stayed.streak(), stayed.moves(), stayed.node()), (1, 1, Some(3)));
        assert!(stayed.is_by(7));
        assert_eq!(stayed.stayed().stayed().moves(), 0);
    }

    #[test]
    fn moves_are_counted_up_to_three() {
        let record = PageHistory::default().after(access_by(7, 3)).moved().moved().moved();
        assert_eq!((record.moves(), record.moved().moves()), (3, 3));
    }

    #[test]
    fn what_is_not_decided_is_looked_at_again() {
        let look = |accesses: &[PageAccess]| {
            let start = (PageHistory::default(), None);
            let next = |(record, _), access: &PageAccess| {
                let decision = decide(record, *access, &LATE);
                (decision.history, Some((decision.moves, decision.look_again)))
            };
            accesses.iter().fold(start, next).1
        };
        let (soon, with_pass) = (LookAgain::Soon, LookAgain::WithPass);
        assert_eq!(look(&[access_by(7, 1)]), Some((false, soon)));
        assert_eq!(look(&[access_by(7, 1), access_by(7, 1)]), Some((true, with_pass)), "decided");
        assert_eq!(look(&[access_by(7, 1), access_by(7, 0)]), Some((false, with_pass)), "local");
        assert_eq!(
            look(&[access_by(7, 1), access_by(8, 1)]),
            Some((false, with_pass)),
            "of several threads"
        );
        let doubtful = Context { doubtful: true, ..LATE };
        let first = decide(PageHistory::default(), access_by(7, 1), &doubtful);
        let second = decide(first.history, access_by(7, 1), &doubtful);
        assert_eq!((first.look_again, second.look_again), (soon, LookAgain::Later));
        let none = Context { has_memory: false, ..LATE };
        let decision = decide(PageHistory::default(), access_by(7, 1), &none);
        assert!(decision.look_again == with_pass && !decision.change);
    }

    #[test]
    fn second_looks_confirm_the_first_or_not_and_doubt_asks_for_more() {
        let confirmed = |accesses: &[PageAccess]| {
            let mut record = PageHistory::default();
            let each = accesses.iter().map(|&access| {
                let decision = decide(record, access, &LATE);
                record = decision.history;
                decision.confirmed
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(
            confirmed(&[access_by(7, 1), access_by(7, 1), access_by(7, 1)]),
            [None, Some(true), None]
        );
        assert_eq!(
            confirmed(&[access_by(7, 1), access_by(8, 0), access_by(8, 0)]),
            [None, Some(false), None],
            "local"
        );
        assert_eq!(
            confirmed(&[access_by(7, 1), access_by(8, 2), access_by(8, 2)]),
            [None, Some(false), Some(true)]
        );
        let doubtful = Context { doubtful: true, ..LATE };
        let first = moves(&[access_by(7, 1); 20], doubtful).iter().position(|moves| *moves);
        assert_eq!(first, Some(11), "the twelfth");
        assert_eq!(
            moves(&[access_by(7, 1); 2], Context { backoff: false, ..doubtful }),
            [false, true]
        );
    }

    #[test]
    fn a_page_that_moves_often_says_nothing_about_change() {
        let mut record = PageHistory::default().after(access_by(7, 0));
        for moves in 0..4 {
            let decision = decide(record, access_by(8, 1), &LATE);
            assert_eq!(decision.change, moves < 2, "{moves} moves");
            record = record.moved();
        }
        // A user that stays indicates a change nevertheless.
        let at_last = (0..20).fold(None, |_, _| {
            let decision = decide(record, access_by(8, 1), &LATE);
            record = decision.history;
            Some((decision.moves, decision.change))
        });
        assert_eq!(at_last, Some((true, true)));
    }

    #[test]
    fn a_history_shows_its_parts() {
        let record = PageHistory::default().after(access_by(7, 3)).moved();
        assert_eq!(format!("{record:?}"), "PageHistory(Some(3), 1 in a row, moved 1 times)");
    }

    #[test]
    fn the_word_keeps_its_parts_apart() {
        let record = PageHistory::default().after(access_by(u32::MAX, 1023)).moved().moved();
        assert_eq!((record.node(), record.streak(), record.moves()), (Some(1023), 1, 2));
        assert!(record.is_by(u32::MAX) && !record.is_by(1));
        assert_eq!(PageHistory::from_word(record.word()), record);
    }
}
