//! The ledger: every item of a round by name, with its issuer, its owner, and the place where it
//! was found.
//!
//! The worker, its signal handler and the accomplice write to it at any time, so it consists of
//! atomics.

use std::sync::atomic::{
    AtomicI64, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use percid_subject::{Fault, Party};

use crate::findings;

/// The most items of a round.
const ENTRIES: usize = 256;

const ISSUED: u32 = 1;
/// It was found in the right place at the end.
const FOUND: u32 = 2;
/// The structure refused it, and reported that.
const REFUSED: u32 = 4;
/// It was taken out, by the party whose number lies in the bits above.
const TAKEN: u32 = 8;
const TAKER: u32 = 4;

/// An item: 24 bits, never 0. It bears the number of the round, so that one of an earlier round is
/// known for what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item(pub(crate) u32);

const MARK: u32 = 1 << 23;

struct Entry {
    state: AtomicU32,
    /// The number of the party that issued it.
    issuer: AtomicU32,
    /// Its length in bytes, if it is a record.
    length: AtomicU32,
    /// The ID in whose copy it lies or lay last; -1 if in none.
    place: AtomicI64,
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            state: AtomicU32::new(0),
            issuer: AtomicU32::new(0),
            length: AtomicU32::new(0),
            place: AtomicI64::new(-1),
        }
    }
}

/// The items of one round.
pub(crate) struct Ledger {
    entries: [Entry; ENTRIES],
    round: AtomicU32,
    issued: AtomicU32,
}

/// The one instance: one operation runs at a time.
pub(crate) static LEDGER: Ledger = Ledger {
    entries: [const { Entry::new() }; ENTRIES],
    round: AtomicU32::new(0),
    issued: AtomicU32::new(0),
};

impl Ledger {
    /// Begins a round: there are no items.
    pub(crate) fn begin(&self) {
        self.round.store((self.round.load(SeqCst) + 1) % (1 << 12), SeqCst);
        for entry in &self.entries[..self.count()] {
            entry.state.store(0, Relaxed);
            entry.place.store(-1, Relaxed);
        }
        self.issued.store(0, SeqCst);
    }

    /// Issues a new item. There are always enough, except for a structure that takes everything and
    /// keeps nothing.
    pub(crate) fn issue(&self, party: Party, length: usize) -> Item {
        let number = self.issued.fetch_add(1, SeqCst).min(ENTRIES as u32 - 1);
        let entry = &self.entries[number as usize];
        entry.issuer.store(party as u32, SeqCst);
        entry.length.store(length as u32, SeqCst);
        entry.state.store(ISSUED, SeqCst);
        Item(MARK | (party as u32) << 20 | self.round.load(SeqCst) << 8 | number)
    }

    /// Records that a party has got an item.
    pub(crate) fn take(&self, item: Item, taker: Party) {
        let Some(entry) = self.entry(item) else { return findings::fault(Fault::Unknown) };
        let taken = TAKEN | (taker as u32) << TAKER;
        let before = entry.state.fetch_or(taken, SeqCst);
        if before & TAKEN != 0 {
            findings::fault(Fault::Doubled);
        }
    }

    /// Records that the thread that took an item puts it back, to a place that belongs to no ID.
    pub(crate) fn give_back(&self, item: Item) {
        if let Some(entry) = self.entry(item) {
            entry.place.store(-1, SeqCst);
            entry.state.store(ISSUED, SeqCst);
        }
    }

    /// Records that the structure has refused an item.
    pub(crate) fn refuse(&self, item: Item) {
        if let Some(entry) = self.entry(item) {
            entry.state.fetch_or(REFUSED, SeqCst);
        }
    }

    /// Records that an item is in the copy of an ID.
    pub(crate) fn locate(&self, item: Item, id: u32) {
        let Some(entry) = self.entry(item) else { return findings::fault(Fault::Unknown) };
        if entry.state.load(SeqCst) & (TAKEN | REFUSED) != 0 {
            findings::fault(Fault::Doubled);
        }
        entry.place.store(id.into(), SeqCst);
    }

    /// Records that an item came out of the structure at the end.
    pub(crate) fn find(&self, item: Item) {
        let Some(entry) = self.entry(item) else { return findings::fault(Fault::Unknown) };
        if entry.state.fetch_or(FOUND, SeqCst) & (FOUND | TAKEN | REFUSED) != 0 {
            findings::fault(Fault::Doubled);
        }
    }

    /// Returns the length with which an item was issued; `None` if it was not.
    pub(crate) fn length(&self, item: Item) -> Option<usize> {
        self.entry(item).map(|entry| entry.length.load(SeqCst) as usize)
    }

    /// Ends a round: records the pushed items that are still there, and the popped ones, at their
    /// places. Returns the numbers of missing and of refused items.
    pub(crate) fn close(&self) -> (u64, u64) {
        let (mut missing, mut refused) = (0, 0);
        for entry in &self.entries[..self.count()] {
            let state = entry.state.load(SeqCst);
            let place = u32::try_from(entry.place.load(SeqCst)).ok();
            match state & (FOUND | TAKEN | REFUSED) {
                0 => missing += 1,
                REFUSED => refused += 1,
                FOUND => findings::took_place(place, party(entry.issuer.load(SeqCst)).amount()),
                _ => findings::took_place(place, party(state >> TAKER).amount()),
            }
        }
        (missing, refused)
    }

    fn count(&self) -> usize {
        (self.issued.load(SeqCst) as usize).min(ENTRIES)
    }

    fn entry(&self, item: Item) -> Option<&Entry> {
        let Item(word) = item;
        let number = (word & 0xff) as usize;
        let same_round = word >> 8 & 0xfff == self.round.load(SeqCst);
        (word & MARK != 0 && word >> 24 == 0 && same_round && number < self.count())
            .then(|| &self.entries[number])
    }
}

fn party(number: u32) -> Party {
    Party::ALL[number as usize % Party::ALL.len()]
}
