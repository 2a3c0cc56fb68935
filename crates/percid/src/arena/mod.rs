//! Per-ID memory: where an object's copies live.
//!
//! One range of address space is reserved per process and cut into *slots* of [`STRIDE`] bytes: slot 0
//! is the shared slot, which is updated by atomic instructions only, and slot `k + 1` belongs to ID
//! `k`. An object is an offset, the same in every slot, so thousands of counters share the cache lines
//! *within* one ID's memory and never across IDs. Slots are opened one by one as IDs come into being,
//! and a page costs memory when an ID first touches it, on the node of the CPU that does.
//!
//! Creating an object takes one atomic addition, or a pop from the list of freed cells, whatever the
//! number of CPUs. All of it is lock-free and async-signal-safe.

mod free_list;

use std::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use free_list::FreeList;

use crate::sys::{affinity, memory};

/// log2 of [`STRIDE`].
pub(crate) const SHIFT: u32 = 24;

/// The bytes of each slot: room for two million counters.
pub(crate) const STRIDE: usize = 1 << SHIFT;

/// A cell is one 64-bit word in every slot.
const CELL_BYTES: usize = 8;

/// The address of slot 0; 0 before the reservation, [`UNAVAILABLE`] if it failed.
static BASE: AtomicUsize = AtomicUsize::new(0);
const UNAVAILABLE: usize = 1;

/// How many slots are open: readable and writable.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// How many slots are reserved.
static RESERVED: AtomicU32 = AtomicU32::new(0);

/// The first offset that was never handed out. The first cell stays unused: offset 0 ends the list of
/// free cells.
static NEXT: AtomicUsize = AtomicUsize::new(CELL_BYTES);

/// The freed cells, linked through their words in the shared slot.
static FREE: FreeList = FreeList { head: AtomicU64::new(0) };

/// Set once anything was stored in the shared slot through [`shared`]: until then sums need not touch
/// its pages.
static SHARED_USED: AtomicU32 = AtomicU32::new(0);

/// The address of slot 0, reserving the arena first if need be; `None` if that is impossible.
fn base() -> Option<usize> {
    match BASE.load(Acquire) {
        0 => reserve(),
        UNAVAILABLE => None,
        base => Some(base),
    }
}

/// Several threads, or a thread and its signal handler, may reserve at once: the first to publish wins
/// and the others give theirs back.
#[cold]
fn reserve() -> Option<usize> {
    let slots = affinity::possible_count() + 1;
    let Some(start) = memory::reserve(slots * STRIDE) else {
        let _ = BASE.compare_exchange(0, UNAVAILABLE, AcqRel, Acquire);
        return published();
    };
    // SAFETY: slot 0 lies inside the reservation.
    let opened = unsafe { memory::open(start.as_ptr(), STRIDE) };
    let base = if opened { start.as_ptr().expose_provenance() } else { UNAVAILABLE };
    RESERVED.store(slots as u32, Relaxed);
    OPEN.fetch_max(1, Relaxed);
    if BASE.compare_exchange(0, base, AcqRel, Acquire).is_err() || !opened {
        // SAFETY: nobody has seen this mapping: the exchange lost, or published no address.
        unsafe { memory::unmap(start, slots * STRIDE) };
    }
    published()
}

fn published() -> Option<usize> {
    Some(BASE.load(Acquire)).filter(|&base| base > UNAVAILABLE)
}

/// Opens the memory of `id`. Answers whether it is open; it is not if the ID is beyond the number of
/// possible CPUs or the kernel refuses (a limit on committed memory).
pub(crate) fn open_id(id: u32) -> bool {
    let Some(base) = base() else { return false };
    let slot = id.saturating_add(1);
    let open = OPEN.load(Acquire);
    if slot < open {
        return true;
    }
    if slot >= RESERVED.load(Relaxed) {
        return false;
    }
    let (start, slots) = (base + open as usize * STRIDE, (slot + 1 - open) as usize);
    // SAFETY: slots below `RESERVED` lie inside the reservation.
    let opened =
        unsafe { memory::open(std::ptr::with_exposed_provenance_mut(start), slots * STRIDE) };
    if opened {
        OPEN.fetch_max(slot + 1, AcqRel);
    }
    opened
}

/// A cell, named by the address of its word in the shared slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell(pub(crate) usize);

impl Cell {
    /// Takes a cell whose word is zero in every slot; `None` if the arena is exhausted or cannot be
    /// reserved.
    pub(crate) fn claim() -> Option<Cell> {
        let base = base()?;
        let freed = FREE.pop(|offset| Cell(base + offset as usize).word(0));
        freed.map(|offset| Cell(base + offset as usize)).or_else(|| bump(base))
    }

    /// Gives the cell back.
    ///
    /// # Safety
    ///
    /// Nobody uses the cell any more, and it is given back once. Then no critical section on it can be
    /// in flight either: a section runs inside an operation of somebody who uses the cell.
    pub(crate) unsafe fn release(self) {
        for slot in 0..OPEN.load(Acquire) {
            let word = self.word(slot);
            // Reading first keeps pages that were never touched from costing memory.
            if word.load(Relaxed) != 0 {
                word.store(0, Relaxed);
            }
        }
        let offset = (self.0 - BASE.load(Relaxed)) as u32;
        FREE.push(offset, self.word(0));
    }

    /// The word of the shared slot, for an update.
    pub(crate) fn shared(self) -> &'static AtomicI64 {
        // Tested before it is set, so that the flag's line stays shared between the CPUs.
        if SHARED_USED.load(Relaxed) == 0 {
            SHARED_USED.store(1, Relaxed);
        }
        self.word(0)
    }

    /// The value in the shared slot; its page is not touched as long as nobody ever updated one.
    pub(crate) fn shared_value(self) -> i64 {
        if SHARED_USED.load(Acquire) == 0 { 0 } else { self.word(0).load(Relaxed) }
    }

    /// The word of `id`, whose memory must have been opened.
    pub(crate) fn of_id(self, id: u32) -> &'static AtomicI64 {
        self.word(id + 1)
    }

    fn word(self, slot: u32) -> &'static AtomicI64 {
        debug_assert!(slot < OPEN.load(Relaxed));
        // SAFETY: cells lie inside slots, and open slots stay mapped for the life of the process.
        unsafe { &*word(self.0 + slot as usize * STRIDE) }
    }
}

/// The word at an address inside the arena.
pub(crate) fn word(address: usize) -> *const AtomicI64 {
    std::ptr::with_exposed_provenance(address)
}

fn bump(base: usize) -> Option<Cell> {
    let next = NEXT.fetch_update(Relaxed, Relaxed, |next| {
        (next + CELL_BYTES <= STRIDE).then_some(next + CELL_BYTES)
    });
    next.ok().map(|offset| Cell(base + offset))
}
