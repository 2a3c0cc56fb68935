//! The open part of the arena: the first slots up to an edge, and the first bytes up to another
//! edge of each slot in every extent.
//!
//! # Why an admitted ID finds every block open
//!
//! An ID is admitted after [`admit`](Frontier::admit) of its slot; a block is allocated after
//! [`widen`](Frontier::widen) of its extent to its end. Each call announces its new edge, and opens
//! everything that has been announced along the other edge. A sequentially consistent fence stands
//! between the announcement and the load of the other edge. So at least one of two calls sees what
//! the other one announced, and opens the intersection before it returns. A call need not open
//! again what an earlier call has *reached*: that call has met the other one in the same way.
//! Opening twice is harmless, and an announcement is never withdrawn, so a call that fails only
//! leaves work for the others.
//!
//! An extent must have been reserved before it is widened; a thread that sees the announcement also
//! sees the extent's address.

use std::ops::Range;

use crate::sys::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release, SeqCst},
    fence,
};

/// The open part of `EXTENTS` extents.
#[derive(Debug)]
pub(crate) struct Frontier<const EXTENTS: usize> {
    /// The number of open slots.
    pub(crate) slots: Edge,
    /// The number of open bytes of each slot, for every extent.
    pub(crate) bytes: [Edge; EXTENTS],
}

/// The end of the open part in one direction.
#[derive(Debug)]
pub(crate) struct Edge {
    /// The announced end.
    pub(crate) wanted: AtomicU32,
    /// The end that is open, whatever is wanted in the other direction by now.
    pub(crate) reached: AtomicU32,
}

impl Edge {
    /// Returns a lower bound of the end that is open.
    pub(crate) fn reached(&self) -> u32 {
        // Acquire: everything up to this end was opened before.
        self.reached.load(Acquire)
    }

    fn announce(&self, end: u32) {
        // Release: a thread that reads it sees the address of the extent.
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
    /// Makes sure that the bytes below `end` of all slots in use are open in an extent. `open` gets
    /// the range of slots and the range of bytes. Returns `false` if it refuses.
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

    /// Makes sure that a slot, and all before it, are open as far as each extent is in use. `open`
    /// gets the extent, the range of slots and the range of bytes. Returns `false` if it refuses.
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
