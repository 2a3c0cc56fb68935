//! The extents: reserved address space, of which slots and parts of them are opened.

use std::ops::Range;
use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use super::frontier::{Edge, Frontier};
use super::given_back::BYTES_PER_BYTE;
use super::places::{EXTENTS, STRIDE};
#[cfg(test)]
use crate::sys::steps::{self, Step};
use crate::sys::{affinity, memory};

/// The minimum number of bytes of a slot that are opened at once: a multiple of every page size.
const SMALLEST_PIECE: usize = 1 << 16;

/// The bytes behind the slots of an extent that hold the bits of [`given_back`](super::given_back).
const BITS: usize = (STRIDE / BYTES_PER_BYTE).next_multiple_of(SMALLEST_PIECE);

/// The addresses of slot 0 of each extent: 0 before the reservation, [`UNAVAILABLE`] if that
/// failed.
pub(super) static EXTENT: [AtomicUsize; EXTENTS] = [const { AtomicUsize::new(0) }; EXTENTS];
pub(super) const UNAVAILABLE: usize = 1;

/// The part that is open, readable and writable. The shared slot is in use from the start.
pub(super) static FRONTIER: Frontier<EXTENTS> =
    Frontier { slots: edge(1), bytes: [const { edge(0) }; EXTENTS] };

const fn edge(start: u32) -> Edge {
    Edge { wanted: AtomicU32::new(start), reached: AtomicU32::new(start) }
}

/// Makes sure that the bytes below `end` of an extent are open in all slots in use, reserving it
/// first if needed. Returns `true` if they are.
pub(super) fn open_up_to(index: usize, end: usize) -> bool {
    let end = end.next_power_of_two().max(SMALLEST_PIECE) as u32;
    let Some(base) = extent(index) else { return false };
    FRONTIER.widen(index, end, |slots, bytes| {
        open_bits(base, bytes.clone()) && open_slots(base, slots, bytes)
    })
}

/// Returns the address of slot 0 of an extent, which is reserved first if needed; `None` if that is
/// not available.
fn extent(index: usize) -> Option<usize> {
    let place = EXTENT.get(index)?;
    let base = match place.load(Acquire) {
        0 => reserve(place),
        base => base,
    };
    (base != UNAVAILABLE).then_some(base)
}

/// Reserves an extent. Several threads, or a thread and its signal handler, may do so at once: the
/// first to publish wins and the others unmap theirs.
#[cold]
fn reserve(place: &AtomicUsize) -> usize {
    let bytes = extent_bytes();
    let start = memory::reserve(bytes);
    let base = start.map_or(UNAVAILABLE, |start| start.as_ptr().expose_provenance());
    match place.compare_exchange(0, base, AcqRel, Acquire) {
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

/// Returns the number of slots in an extent: one for every possible CPU, and the shared one. Read
/// once, so that all extents have the same number.
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

/// Returns the size of an extent's address space: its slots, and behind them the bits of
/// [`given_back`](super::given_back).
fn extent_bytes() -> usize {
    slots() as usize * STRIDE + BITS
}

/// Returns the address of the bits of the extent at `base`.
pub(super) fn bits_start(base: usize) -> usize {
    base + slots() as usize * STRIDE
}

/// Opens the bits for some bytes of the slots of the extent at `base`.
fn open_bits(base: usize, bytes: Range<u32>) -> bool {
    let start = bytes.start as usize / BYTES_PER_BYTE / SMALLEST_PIECE * SMALLEST_PIECE;
    let end = (bytes.end as usize / BYTES_PER_BYTE).next_multiple_of(SMALLEST_PIECE);
    let place = std::ptr::with_exposed_provenance_mut(bits_start(base) + start);
    // SAFETY: the range has at most the bytes of a slot, whose bits lie inside the reservation.
    unsafe { memory::open(place, end - start) }
}

/// Opens a range of bytes in each of some slots of the extent at `base`.
fn open_slots(base: usize, mut slots: Range<u32>, bytes: Range<u32>) -> bool {
    slots.all(|slot| {
        let start = base + slot as usize * STRIDE + bytes.start as usize;
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: slots below `slots()` lie inside the reservation, and no more are ever wanted.
        // The range has at most the bytes of a slot.
        unsafe { memory::open(start, bytes.len()) }
    })
}

/// Returns the address ranges of all extents so far.
pub(crate) fn reserved() -> impl Iterator<Item = Range<usize>> {
    let bases = EXTENT.iter().map(|place| place.load(Acquire));
    let bytes = extent_bytes();
    bases.filter(|base| ![0, UNAVAILABLE].contains(base)).map(move |base| base..base + bytes)
}

/// Returns the addresses of the memory that holds an ID's copies of all structures: for `mbind`, or
/// for NUMA balancing. With more structures there are more ranges, and the last ones grow; no range
/// is ever removed. Async-signal-safe.
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
    let reached = FRONTIER.bytes.iter().map(|bytes| bytes.reached() as usize);
    let in_use = EXTENT.iter().zip(reached).filter(|(_, bytes)| *bytes > 0);
    in_use.map(move |(place, bytes)| {
        let start = place.load(Acquire) + slot;
        start..start + bytes
    })
}

/// Opens the memory of `id`. Returns `true` if it is open; it is not if the ID is beyond the number
/// of possible CPUs or the kernel refuses (a limit on committed memory).
pub(crate) fn open_id(id: u32) -> bool {
    #[cfg(test)]
    if let Some(answer) = steps::at(Step::OpenId(id)) {
        return answer.is_ok();
    }
    let slot = id.saturating_add(1);
    if slot < FRONTIER.slots.reached() {
        return true;
    }
    if slot >= slots() {
        return false;
    }
    FRONTIER
        .admit(slot, |index, slots, bytes| open_slots(EXTENT[index].load(Relaxed), slots, bytes))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::arena::{Block, word};

    #[test]
    fn ids_beyond_the_possible_cpus_have_no_memory() {
        let last = slots() - 2;
        assert!(open_id(last));
        assert!(!open_id(last + 1) && !open_id(u32::MAX) && !open_id(u32::MAX - 1));
        assert_eq!(FRONTIER.slots.reached(), slots());
    }

    /// No other test uses the last extent.
    #[test]
    fn an_extent_that_cannot_be_had_keeps_no_id_from_the_others() {
        let last = EXTENTS - 1;
        let taken = EXTENT[last].compare_exchange(0, UNAVAILABLE, Relaxed, Relaxed);
        assert!(taken.is_ok() && !open_up_to(last, 64));
        assert_eq!(FRONTIER.bytes[last].wanted.load(Relaxed), 0, "IDs would be refused for it");
        assert!(memory_of(0).all(|range| range.start > STRIDE + UNAVAILABLE));
        assert!(!open_up_to(EXTENTS, 64), "there are no more");
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn who_reserves_second_adopts_the_first_and_keeps_nothing() {
        let size = || {
            let statm = std::fs::read_to_string("/proc/self/statm").expect("/proc");
            let pages = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
            pages.expect("a number of pages") * 4096
        };
        let (theirs, before) = (AtomicUsize::new(1 << 30), size());
        (0..200).for_each(|_| assert_eq!(reserve(&theirs), 1 << 30));
        // Other tests reserve some extents during this one.
        assert!(size() < before + 150 * u64::from(slots()) * STRIDE as u64);
    }

    #[test]
    fn the_memory_of_an_id_is_where_its_shards_are() {
        let block = Block::claim(STRIDE).expect("room");
        assert!(open_id(0));
        let shard = block.of_id(0);
        let of_id = |address| memory_of(0).any(|range| range.contains(&address));
        assert!(of_id(shard) && of_id(shard + STRIDE - 1) && !of_id(block.0));
        // Memory that was not reserved belongs to no ID.
        assert!(memory_of(0).all(|range| range.len() <= STRIDE && range.start > 2 * STRIDE));
        // SAFETY: the block is this test's, and its slot is open to the end.
        unsafe { &*word(shard + STRIDE - 8) }.store(1, Relaxed);
        // SAFETY: no thread uses the block any more.
        unsafe { block.release(STRIDE) };
    }

    /// Calls that are told which part to open, and open it or not.
    #[test]
    fn each_call_opens_the_part_that_is_new_and_a_refused_one_is_made_again() {
        let edge = || Edge { wanted: AtomicU32::new(0), reached: AtomicU32::new(0) };
        let frontier = Frontier { slots: edge(), bytes: [edge(), edge()] };
        let admit = |slot: u32, opens: bool| {
            let parts = RefCell::new(Vec::new());
            let open = |extent: usize, slots: Range<u32>, bytes: Range<u32>| {
                parts.borrow_mut().push((extent, slots, bytes));
                opens
            };
            let opened = frontier.admit(slot, open);
            let parts = parts.take();
            assert_eq!(opened, opens || parts.is_empty());
            parts
        };
        let widen = |extent: usize, end: u32, opens: bool| {
            let mut part = None;
            let open = |slots: Range<u32>, bytes: Range<u32>| {
                part = Some((slots, bytes));
                opens
            };
            let opened = frontier.widen(extent, end, open);
            assert_eq!(opened, opens || part.is_none());
            part
        };
        assert_eq!(admit(2, true), [], "no extent is in use");
        assert_eq!(widen(1, 64, false), Some((0..3, 0..64)));
        assert_eq!(widen(1, 64, true), Some((0..3, 0..64)));
        assert_eq!(widen(1, 64, true), None);
        assert_eq!(widen(1, 96, true), Some((0..3, 64..96)));
        assert_eq!(admit(2, true), []);
        assert_eq!(admit(4, false), [(1, 3..5, 0..96)]);
        assert_eq!(admit(4, true), [(1, 3..5, 0..96)]);
        assert_eq!(widen(0, 8, true), Some((0..5, 0..8)));
        assert_eq!(admit(5, true), [(0, 5..6, 0..8), (1, 5..6, 0..96)]);
    }
}
