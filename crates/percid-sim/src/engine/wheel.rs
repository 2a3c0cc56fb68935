//! A timing wheel: returns the earliest entry at a cost that hardly depends on the number of
//! entries.
//!
//! Time is divided into slots of four microseconds. The entries of a slot are unordered until its
//! time has come; then they are sorted together. The wheel has the slots of the next 16 ms, which
//! contain nearly all events of a scheduler. Later entries wait in a heap. The idea is from
//! Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987, and Brown, "Calendar Queues",
//! 1988.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Ns;

/// A value and its time. Entries with the same time are ordered by `what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WheelEntry {
    pub(super) at: Ns,
    pub(super) what: u64,
}

/// Binary logarithm of the length of a slot in nanoseconds.
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << 12;

/// The end of a list of nodes.
const NONE: u32 = u32::MAX;

/// A node: an entry in the list of its slot, or an element of the free list.
#[derive(Debug, Clone, Copy)]
struct Node {
    entry: WheelEntry,
    next: u32,
}

/// A priority queue of entries, earliest first.
#[derive(Debug)]
pub(super) struct Wheel {
    /// Entries of the current slot, the earliest one last.
    due: Vec<WheelEntry>,
    /// Entries of the current slot, or of an earlier one, that were inserted after it was sorted.
    late: BinaryHeap<Reverse<WheelEntry>>,
    /// The current slot, counted from time 0.
    slot: u64,
    /// The first node of each slot.
    first: Box<[u32; SLOTS]>,
    filled: Filled,
    nodes: Vec<Node>,
    free: u32,
    /// Entries beyond the wheel.
    far: BinaryHeap<Reverse<WheelEntry>>,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel {
            due: Vec::new(),
            late: BinaryHeap::new(),
            slot: 0,
            first: Box::new([NONE; SLOTS]),
            filled: Filled::default(),
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
        }
    }
}

impl Wheel {
    /// Inserts an entry.
    #[inline]
    pub(super) fn put(&mut self, entry: WheelEntry) {
        let slot = entry.at >> SLOT_BITS;
        if slot <= self.slot {
            self.late.push(Reverse(entry));
        } else if slot - self.slot < SLOTS as u64 {
            self.link(slot, entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// Removes and returns the earliest entry.
    #[inline]
    pub(super) fn take(&mut self) -> Option<WheelEntry> {
        if let Some(&Reverse(late)) = self.late.peek() {
            if self.due.last().is_none_or(|due| late < *due) {
                self.late.pop();
                return Some(late);
            }
        }
        if self.due.is_empty() {
            self.turn();
        }
        self.due.pop()
    }

    /// Adds an entry to the list of its slot, which must be within the wheel.
    #[inline]
    fn link(&mut self, slot: u64, entry: WheelEntry) {
        let place = slot as usize % SLOTS;
        let node = Node { entry, next: self.first[place] };
        if node.next == NONE {
            self.filled.insert(place);
        }
        if self.free == NONE {
            self.first[place] = self.nodes.len() as u32;
            self.nodes.push(node);
        } else {
            let free = self.free;
            self.first[place] = free;
            self.free = std::mem::replace(&mut self.nodes[free as usize], node).next;
        }
    }

    /// Advances the wheel to the next slot with entries, and makes these due.
    fn turn(&mut self) {
        let here = self.slot as usize % SLOTS;
        let far = self.far.peek().map(|Reverse(entry)| entry.at >> SLOT_BITS);
        self.slot = match self.filled.next(here) {
            Some(place) => self.slot + (place.wrapping_sub(here) % SLOTS) as u64,
            None => far.unwrap_or(self.slot),
        };
        while let Some(&Reverse(entry)) = self.far.peek() {
            let slot = entry.at >> SLOT_BITS;
            if slot - self.slot >= SLOTS as u64 {
                break;
            }
            self.far.pop();
            self.link(slot, entry);
        }
        self.collect(self.slot as usize % SLOTS);
    }

    /// Moves the entries of a slot to `due`, and sorts them.
    fn collect(&mut self, place: usize) {
        let mut at = std::mem::replace(&mut self.first[place], NONE);
        if at == NONE {
            return;
        }
        self.filled.remove(place);
        while at != NONE {
            let node = &mut self.nodes[at as usize];
            self.due.push(node.entry);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = at;
            at = next;
        }
        if self.due.len() > 1 {
            self.due.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
}

/// The slots that have entries: a bit for each slot, and a summary bit for each nonzero word.
#[derive(Debug)]
struct Filled {
    words: [u64; SLOTS / 64],
    summary: [u64; SLOTS / 64 / 64],
}

impl Default for Filled {
    fn default() -> Filled {
        Filled { words: [0; SLOTS / 64], summary: [0; SLOTS / 64 / 64] }
    }
}

impl Filled {
    fn insert(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
        self.summary[place / 64 / 64] |= 1 << (place / 64 % 64);
    }

    fn remove(&mut self, place: usize) {
        self.words[place / 64] &= !(1 << (place % 64));
        if self.words[place / 64] == 0 {
            self.summary[place / 64 / 64] &= !(1 << (place / 64 % 64));
        }
    }

    /// Returns the first filled slot after one that is not filled itself, all around the wheel.
    fn next(&self, after: usize) -> Option<usize> {
        let (word, bit) = (after / 64, after % 64);
        let rest = self.words[word] & (u64::MAX << bit);
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let word = self.next_word(word)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }

    /// Returns the first nonzero word after one, all around the wheel; that one itself comes last.
    fn next_word(&self, after: usize) -> Option<usize> {
        let (at, bit) = (after / 64, after % 64);
        let count = self.summary.len();
        let above = self.summary[at] & !(u64::MAX >> (63 - bit));
        if above != 0 {
            return Some(at * 64 + above.trailing_zeros() as usize);
        }
        let at = (1..=count).map(|step| (at + step) % count).find(|&at| self.summary[at] != 0)?;
        Some(at * 64 + self.summary[at].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Compares the wheel with a heap: both must return the same entries in the same order.
    fn comes_out_as_of_a_heap(seed: u64, pause: impl Fn(&mut Random) -> Ns) -> u64 {
        let mut random = Random::new(seed);
        let (mut wheel, mut heap) = (Wheel::default(), BinaryHeap::new());
        let (mut now, mut taken) = (0, 0);
        for what in 0..20_000 {
            // The number of entries grows at first, then goes up and down; now and then it is 0.
            if what < 300 || random.below(2) == 0 {
                let entry = WheelEntry { at: now + pause(&mut random), what };
                wheel.put(entry);
                heap.push(Reverse(entry));
            } else {
                let expected = heap.pop().map(|Reverse(entry)| entry);
                assert_eq!(wheel.take(), expected, "seed {seed}");
                now = expected.map_or(now, |entry| entry.at);
                taken += u64::from(expected.is_some());
            }
        }
        while let Some(Reverse(entry)) = heap.pop() {
            assert_eq!(wheel.take(), Some(entry), "seed {seed}");
        }
        assert_eq!(wheel.take(), None);
        taken
    }

    #[test]
    fn entries_come_out_as_of_a_heap() {
        let wheel = (SLOTS as u64) << SLOT_BITS;
        for seed in 0..10 {
            let pauses: [&dyn Fn(&mut Random) -> Ns; 5] = [
                &|random| random.below(3),
                &|random| random.below(100_000),
                &|random| random.below(3 * wheel),
                &|random| wheel - 2 + random.below(4),
                // Times of all orders of magnitude.
                &|random| 1 << random.below(50),
            ];
            for pause in pauses {
                assert!(comes_out_as_of_a_heap(seed, pause) > 5_000);
            }
        }
    }

    #[test]
    fn the_last_moments_of_time_come_last() {
        let mut wheel = Wheel::default();
        for (what, at) in [(0, Ns::MAX), (1, 0), (2, Ns::MAX - 1), (3, 1 << 40)] {
            wheel.put(WheelEntry { at, what });
        }
        let order: Vec<u64> = std::iter::from_fn(|| wheel.take()).map(|e| e.what).collect();
        assert_eq!(order, [1, 3, 2, 0]);
    }
}
