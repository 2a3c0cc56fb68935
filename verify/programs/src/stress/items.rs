//! Items that record whether a thread has them: taking an item that is taken, or putting one that
//! is there, is detected at once.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

const HELD: u8 = 0;
const INSIDE: u8 = 1;

pub(super) struct Items {
    states: Vec<AtomicU8>,
    /// Items that two had at the same time.
    doubled: AtomicU64,
    moved: AtomicU64,
}

impl Items {
    /// This many items, all held by the caller.
    pub(super) fn new(count: usize) -> Items {
        Items {
            states: (0..count).map(|_| AtomicU8::new(HELD)).collect(),
            doubled: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// Records that an item will be put into the structure; call it before.
    pub(super) fn put(&self, item: u64) {
        self.change(item, HELD, INSIDE);
    }

    /// Records that an item was taken out of the structure.
    pub(super) fn took(&self, item: u64) {
        self.change(item, INSIDE, HELD);
    }

    fn change(&self, item: u64, from: u8, to: u8) {
        let known = self.states.get(item as usize);
        let right = known.is_some_and(|state| state.swap(to, Relaxed) == from);
        self.doubled.fetch_add(u64::from(!right), Relaxed);
        self.moved.fetch_add(1, Relaxed);
    }

    /// Returns `true` if nothing was doubled and no item is inside any more, and the figures.
    pub(super) fn account(&self) -> (bool, String) {
        let inside = self.states.iter().filter(|state| state.load(Relaxed) == INSIDE);
        let (lost, doubled) = (inside.count(), self.doubled.load(Relaxed));
        let moved = self.moved.load(Relaxed);
        let figures = format!("items={} moved={moved} lost={lost} doubled={doubled}", self.len());
        (lost == 0 && doubled == 0, figures)
    }
}
