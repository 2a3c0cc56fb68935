//! Which part of the arena is open: the first so many slots, and of each of them the first so many
//! bytes in every extent.
//!
//! # Why an ID that was admitted finds every block open
//!
//! An ID is admitted after [`admit`](Frontier::admit) of its slot; a block is handed out after
//! [`widen`](Frontier::widen) of its extent to its end. Each announces how far it goes, and opens
//! all that has been announced along the other edge. Between the announcement and the look at the
//! other one stands a sequentially consistent fence, so of two calls at least one sees what the
//! other one announced, and opens the part where they meet before it returns. What an earlier call
//! has *reached* it need not open again: that call has met the other one in the same way. Opening
//! twice does no harm, and what is announced is never taken back, so a call that fails leaves no
//! more behind than work for the others.
//!
//! An extent must have been reserved before it is widened; who sees that it is to be opened also
//! sees where it is.

use std::ops::Range;

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release, SeqCst},
    fence,
};

/// The open part of `EXTENTS` extents.
#[derive(Debug)]
pub(crate) struct Frontier<const EXTENTS: usize> {
    /// How many slots.
    pub(crate) slots: Edge,
    /// How many bytes of each slot, for every extent.
    pub(crate) bytes: [Edge; EXTENTS],
}

/// How far the open part reaches in one direction.
#[derive(Debug)]
pub(crate) struct Edge {
    /// How far it is to reach.
    pub(crate) wanted: AtomicU32,
    /// How far it reaches, whatever is wanted in the other direction by now.
    pub(crate) reached: AtomicU32,
}

impl Edge {
    /// How far it reaches at least.
    pub(crate) fn reached(&self) -> u32 {
        // Acquire: what was opened up to here has happened before.
        self.reached.load(Acquire)
    }

    fn announce(&self, end: u32) {
        // Release: who reads it sees where the extent is.
        self.wanted.fetch_max(end, Release);
        fence(SeqCst);
    }

    fn wanted(&self) -> u32 {
        self.wanted.load(Acquire)
    }

    fn reach(&self, end: u32) {
        self.reached.fetch_max(end, Release);
    }
}

impl<const EXTENTS: usize> Frontier<EXTENTS> {
    /// Makes sure that the bytes below `end` of all slots in use are open in an extent. `open` is
    /// told which bytes of which slots; `false` if it refuses.
    pub(crate) fn widen(
        &self,
        extent: usize,
        end: u32,
        open: impl FnOnce(Range<u32>, Range<u32>) -> bool,
    ) -> bool {
        let edge = &self.bytes[extent];
        let reached = edge.reached();
        if end <= reached {
            return true;
        }
        edge.announce(end);
        let opened = open(0..self.slots.wanted(), reached..end);
        if opened {
            edge.reach(end);
        }
        opened
    }

    /// Makes sure that a slot, and all before it, is open as far as each extent is in use. `open`
    /// is told which bytes of which slots in which extent; `false` if it refuses.
    pub(crate) fn admit(
        &self,
        slot: u32,
        open: impl Fn(usize, Range<u32>, Range<u32>) -> bool,
    ) -> bool {
        let (reached, end) = (self.slots.reached(), slot + 1);
        if end <= reached {
            return true;
        }
        self.slots.announce(end);
        let mut in_use =
            self.bytes.iter().map(Edge::wanted).enumerate().filter(|(_, bytes)| *bytes > 0);
        let opened = in_use.all(|(extent, bytes)| open(extent, reached..end, 0..bytes));
        if opened {
            self.slots.reach(end);
        }
        opened
    }
}
