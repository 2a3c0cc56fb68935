//! The runnable threads that wait for a CPU, in the order of arrival.

use std::collections::{BTreeMap, VecDeque};

/// Number of an address space with its own mask, from 0.
pub(super) type Space = u32;

/// Number of a thread, from 0 over all address spaces.
pub(super) type Thread = u32;

/// One queue for the machine, which can also return the threads of one address space.
#[derive(Debug)]
pub(super) struct Ready {
    arrivals: u64,
    all: BTreeMap<u64, (Space, Thread)>,
    /// Arrivals of each address space.
    of: Vec<VecDeque<u64>>,
}

impl Ready {
    pub(super) fn new(spaces: u32) -> Ready {
        Ready { arrivals: 0, all: BTreeMap::new(), of: vec![VecDeque::new(); spaces as usize] }
    }

    pub(super) fn push(&mut self, space: Space, thread: Thread) {
        self.all.insert(self.arrivals, (space, thread));
        self.of[space as usize].push_back(self.arrivals);
        self.arrivals += 1;
    }

    /// Removes and returns the thread that has waited longest.
    pub(super) fn pop(&mut self) -> Option<Thread> {
        let space = self.all.values().next()?.0;
        self.pop_of(space)
    }

    /// Removes and returns the thread of this address space that has waited longest.
    pub(super) fn pop_of(&mut self, space: Space) -> Option<Thread> {
        let arrival = self.of[space as usize].pop_front()?;
        self.all.remove(&arrival).map(|(_, thread)| thread)
    }

    /// Removes and returns the thread of any other address space that has waited longest.
    pub(super) fn pop_other(&mut self, than: Space) -> Option<Thread> {
        let other = self.all.values().map(|(space, _)| *space).find(|space| *space != than)?;
        self.pop_of(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_longest_is_next() {
        let mut ready = Ready::new(3);
        for (space, thread) in [(0, 10), (0, 11), (1, 20), (2, 30), (1, 21), (0, 12)] {
            ready.push(space, thread);
        }
        assert_eq!(ready.pop_other(0), Some(20));
        assert_eq!(ready.pop_of(1), Some(21));
        assert_eq!(ready.pop(), Some(10));
        assert_eq!(ready.pop_of(1), None);
        assert_eq!(ready.pop_other(2), Some(11));
        assert_eq!([ready.pop(), ready.pop(), ready.pop()], [Some(30), Some(12), None]);
    }
}
