//! Per-ID memory: where an object's shards are.
//!
//! # Slots and extents
//!
//! A range of address space is reserved and cut into *slots* of [`STRIDE`] bytes: slot 0 is the
//! shared slot, which no critical section writes to, and slot `k + 1` belongs to ID `k`. An object
//! is an address in slot 0; its shards lie at the same place in every slot, so thousands of
//! counters share the cache lines *within* one ID's memory and never across IDs. Such a range is an
//! *extent*. There is one until a slot of it is full, and up to [`EXTENTS`] of them: since the
//! stride is the same everywhere, an object's address alone leads to its shards, whichever extent
//! it lies in.
//!
//! Slots are opened as IDs come into being, and a page costs memory when an ID first touches it, on
//! the node of the CPU that does. Creating an object takes a pop from a list of freed blocks or an
//! atomic addition, whatever the number of CPUs. All of it is lock-free and async-signal-safe.
//!
//! # Why an ID that was admitted finds its slot open in every extent
//!
//! An ID is admitted after [`open_id`]; a block is handed out of an extent after [`extent`]. One
//! announces the slot and then looks for extents; the other announces the extent and then looks for
//! slots; both in the one order of sequentially consistent accesses. So at least one of them sees
//! the other, and opens the slot in the extent before the ID is admitted or the block is handed
//! out. Opening twice does no harm.

mod block;
mod free_list;

use std::ops::Range;
use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
};

#[cfg(test)]
use crate::sys::steps::{self, Step};
use crate::sys::{affinity, memory};

pub(crate) use block::{Block, BlockList, word};

/// log2 of [`STRIDE`].
pub(crate) const SHIFT: u32 = 24;

/// The bytes of a slot: room for two million counters, and the largest object.
pub(crate) const STRIDE: usize = 1 << SHIFT;

/// The most extents of a process: together 1 GiB for every ID.
const EXTENTS: usize = 64;

/// The addresses of slot 0 of each extent: 0 before the reservation, [`UNAVAILABLE`] if that
/// failed. With [`OPENING`] added until the slots in use have been opened.
static EXTENT: [AtomicUsize; EXTENTS] = [const { AtomicUsize::new(0) }; EXTENTS];
const UNAVAILABLE: usize = 1;
const OPENING: usize = 2;

/// How many slots are open, readable and writable, in every extent that blocks come from.
static OPEN: AtomicU32 = AtomicU32::new(1);

/// How many slots are to be open: those of the IDs that are, or are about to be, admitted.
static WANTED: AtomicU32 = AtomicU32::new(1);

/// The address of slot 0 of an extent whose slots in use are open, reserving it first if need be;
/// `None` if that is not available.
fn extent(index: usize) -> Option<usize> {
    let place = EXTENT.get(index)?;
    let mut base = place.load(SeqCst);
    if base == 0 {
        base = reserve(place);
    }
    if base & OPENING != 0 {
        let opened = base - OPENING;
        if !open_slots(opened, 0, WANTED.load(SeqCst)) {
            return None;
        }
        // Others may be here at once, and have done the same.
        let _ = place.compare_exchange(base, opened, AcqRel, Relaxed);
        base = opened;
    }
    (base != UNAVAILABLE).then_some(base)
}

/// Several threads, or a thread and its signal handler, may reserve at once: the first to publish
/// wins and the others give theirs back.
#[cold]
fn reserve(place: &AtomicUsize) -> usize {
    let bytes = slots() as usize * STRIDE;
    let start = memory::reserve(bytes);
    let base = start.map_or(UNAVAILABLE, |start| start.as_ptr().expose_provenance() | OPENING);
    match place.compare_exchange(0, base, SeqCst, SeqCst) {
        Ok(_) => base,
        Err(theirs) => {
            if let Some(start) = start {
                // SAFETY: no other thread has seen this mapping: the exchange failed.
                unsafe { memory::unmap(start, bytes) };
            }
            theirs
        }
    }
}

/// How many slots an extent has: one for every possible CPU, and the shared one. Read once, so that
/// all extents have the same number.
fn slots() -> u32 {
    static SLOTS: AtomicU32 = AtomicU32::new(0);
    match SLOTS.load(Relaxed) {
        0 => {
            let _ =
                SLOTS.compare_exchange(0, affinity::possible_count() as u32 + 1, Relaxed, Relaxed);
            SLOTS.load(Relaxed)
        }
        known => known,
    }
}

fn open_slots(base: usize, first: u32, end: u32) -> bool {
    let start = std::ptr::with_exposed_provenance_mut(base + first as usize * STRIDE);
    // SAFETY: slots below `slots()` lie inside the reservation, and no more are ever wanted.
    unsafe { memory::open(start, (end - first) as usize * STRIDE) }
}

/// The addresses of the memory that holds an ID's copies of all structures: for `mbind`, or for
/// NUMA balancing. There are more ranges when there are more structures; none goes away.
/// Async-signal-safe.
///
/// ```
/// use percid::{Counter, Source};
///
/// static REQUESTS: Counter = Counter::new();
/// REQUESTS.add(1);
/// assert_ne!(percid::id::memory_of(0).count(), 0);
/// ```
pub fn memory_of(id: u32) -> impl Iterator<Item = Range<usize>> {
    let slot = (id as usize + 1) * STRIDE;
    let in_use = EXTENT.iter().map(|place| place.load(Acquire));
    let opened = in_use.filter(|base| *base & (UNAVAILABLE | OPENING) == 0 && *base != 0);
    opened.map(move |base| base + slot..base + slot + STRIDE)
}

/// Opens the memory of `id`. Returns whether it is open; it is not if the ID is beyond the number
/// of possible CPUs or the kernel refuses (a limit on committed memory).
pub(crate) fn open_id(id: u32) -> bool {
    #[cfg(test)]
    if let Some(answer) = steps::at(Step::OpenId(id)) {
        return answer.is_ok();
    }
    let slot = id.saturating_add(1);
    let open = OPEN.load(Acquire);
    if slot < open {
        return true;
    }
    if slot >= slots() || extent(0).is_none() {
        return false;
    }
    WANTED.fetch_max(slot + 1, SeqCst);
    for place in &EXTENT {
        match place.load(SeqCst) {
            // Not there yet; later ones may be, since threads claim them in any order.
            0 | UNAVAILABLE => {}
            base if !open_slots(base & !OPENING, open, slot + 1) => return false,
            _ => {}
        }
    }
    OPEN.fetch_max(slot + 1, AcqRel);
    true
}
