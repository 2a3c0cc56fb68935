//! The open part of the arena: a thread that was admitted finds everything open that was assigned.

use std::ops::Range;

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::thread;

use crate::explore;
use crate::frontier::{Edge, Frontier};

/// One extent of 3 slots with 2 bytes each.
struct Arena {
    frontier: Frontier<1>,
    /// The address of the extent: 0 until it is known.
    base: AtomicU32,
    open: [[AtomicU32; 2]; 3],
}

fn edge(start: u32) -> Edge {
    Edge { wanted: AtomicU32::new(start), reached: AtomicU32::new(start) }
}

impl Arena {
    fn new() -> Arc<Arena> {
        let frontier = Frontier { slots: edge(1), bytes: [edge(0)] };
        Arc::new(Arena { frontier, base: AtomicU32::new(0), open: Default::default() })
    }

    fn open(&self, slots: Range<u32>, bytes: Range<u32>) -> bool {
        for slot in slots {
            bytes
                .clone()
                .for_each(|byte| self.open[slot as usize][byte as usize].store(1, Relaxed));
        }
        true
    }

    /// Publishes the bytes below `end`; a thread that was admitted must find them open.
    fn hand_out(&self, end: u32) {
        self.base.store(1, Relaxed);
        assert!(self.frontier.widen(0, end, |slots, bytes| self.open(slots, bytes)));
        self.check(self.frontier.slots.reached(), end);
    }

    /// Admits a slot, which must find everything open that was published.
    fn admit(&self, slot: u32) {
        let opened = self.frontier.admit(slot, |extent, slots, bytes| {
            assert_eq!((extent, self.base.load(Relaxed)), (0, 1), "it is known where it is");
            self.open(slots, bytes)
        });
        assert!(opened);
        self.check(slot + 1, self.frontier.bytes[0].reached());
    }

    fn check(&self, slots: u32, bytes: u32) {
        for (slot, byte) in (0..slots).flat_map(|slot| (0..bytes).map(move |byte| (slot, byte))) {
            let open = self.open[slot as usize][byte as usize].load(Relaxed) == 1;
            assert!(open, "byte {byte} of slot {slot} is closed");
        }
    }
}

#[test]
fn who_is_admitted_finds_open_what_is_handed_out() {
    explore::all("frontier, 2 threads, an ID and a block", || {
        let arena = Arena::new();
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || theirs.admit(1));
        arena.hand_out(2);
        other.join().unwrap();
        arena.check(2, 2);
    });
}

#[test]
fn step_by_step() {
    explore::bounded(2, "frontier, 2 threads, an ID and 2 blocks", || {
        let arena = Arena::new();
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || theirs.admit(1));
        arena.hand_out(1);
        arena.hand_out(2);
        other.join().unwrap();
        arena.check(2, 2);
    });
}

#[test]
#[ignore = "slow: most of the executions of all of these tests"]
fn what_another_has_reached_is_open() {
    explore::bounded(2, "frontier, 2 threads at the same edges", || {
        let arena = Arena::new();
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || {
            theirs.hand_out(2);
            theirs.admit(1);
        });
        arena.hand_out(1);
        arena.admit(2);
        other.join().unwrap();
        arena.check(3, 2);
        let reached = [&arena.frontier.slots, &arena.frontier.bytes[0]].map(Edge::reached);
        assert_eq!(reached, [3, 2], "what was reached is taken back");
    });
}

#[test]
fn who_is_refused_has_reached_nothing() {
    explore::all("frontier, refusals", || {
        let arena = Arena::new();
        assert!(!arena.frontier.widen(0, 1, |_, _| false));
        assert_eq!(arena.frontier.bytes[0].reached(), 0);
        assert!(!arena.frontier.admit(1, |_, _, _| false));
        assert_eq!(arena.frontier.slots.reached(), 1);
        arena.hand_out(1);
        arena.admit(1);
    });
}

#[test]
fn without_a_fence_it_is_caught() {
    explore::expect_failure("frontier, a block without a fence", || {
        let arena = Arena::new();
        let theirs = Arc::clone(&arena);
        let other = thread::spawn(move || theirs.admit(1));
        arena.base.store(1, Relaxed);
        let edge = &arena.frontier.bytes[0];
        edge.wanted.fetch_max(2, Release);
        arena.open(0..arena.frontier.slots.wanted.load(Acquire), 0..2);
        other.join().unwrap();
        arena.check(2, 2);
    });
}
