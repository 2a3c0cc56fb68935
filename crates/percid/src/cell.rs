//! Cells: one 64-bit word per ID that is only added to. A counter is one, a histogram is thousands.

use std::sync::atomic::Ordering::Relaxed;

use crate::arena::Block;
use crate::critical;
use crate::handle::{KERNEL, TABLE};
use crate::id::{self, RESTART_LIMIT, Source};
use crate::shared_slot;

/// The fast path: adds `n` to this CPU's shard of the word at `address`, whose lowest bits are the marks of
/// the object it belongs to. Answers whether it did.
///
/// # Safety
///
/// `address` less its marks is the address of a word in an object's block, and the marks were read from
/// that object by an acquiring load.
#[inline(always)]
pub(crate) unsafe fn add_fast(address: usize, n: i64) -> bool {
    if address & KERNEL != 0 {
        // SAFETY: by contract; an object gets its mark after the source has been prepared.
        unsafe { critical::add_kernel::<{ -(KERNEL as isize) }>(address, n) }
    } else if address & TABLE != 0 {
        // SAFETY: as above.
        unsafe { critical::add_table::<{ -(TABLE as isize) }>(address, n) }
    } else {
        false
    }
}

/// Adds through the source, trying a bounded number of times, then to the shared slot.
pub(crate) fn add(cell: Block, source: Option<Source>, n: i64) {
    match source {
        None => add_shared(cell, n),
        Some(Source::Atomic) => add_at_hint(cell, n),
        Some(source) => {
            for _ in 0..RESTART_LIMIT {
                if try_once(cell, source, n) {
                    return;
                }
                if !source.enter() {
                    break;
                }
            }
            add_shared(cell, n);
        }
    }
}

/// Out of line, so that an unrolled loop does not repeat the sections.
#[inline(never)]
fn try_once(cell: Block, source: Source, n: i64) -> bool {
    match source {
        // SAFETY: the word of a block that was claimed for this source, which has been prepared.
        Source::Kernel => unsafe { critical::add_kernel::<0>(cell.0, n) },
        // SAFETY: as above.
        Source::Table => unsafe { critical::add_table::<0>(cell.0, n) },
        Source::Atomic => false,
    }
}

/// What the atomic source does.
pub(crate) fn add_at_hint(cell: Block, n: i64) {
    match id::atomic::open_hint() {
        Some(hint) => _ = cell.word_of_id(hint).fetch_add(n, Relaxed),
        None => add_shared(cell, n),
    }
}

fn add_shared(cell: Block, n: i64) {
    shared_slot::add(cell.shared(), n);
}

/// The values of all IDs.
pub(crate) fn by_id(cell: Block, source: Option<Source>) -> impl Iterator<Item = i64> {
    let ids = source.map_or(0, Source::ids_seen);
    (0..ids).map(move |id| cell.word_of_id(id).load(Relaxed))
}

/// The total of the IDs and the shared slot.
pub(crate) fn sum(cell: Block, source: Option<Source>) -> i64 {
    by_id(cell, source).fold(cell.shared_value(), i64::wrapping_add)
}

/// Takes the total and leaves zero, or what is added meanwhile.
///
/// Lock-free: it starts over if another `take`, or an addition without an ID, comes in between.
pub(crate) fn take(cell: Block, source: Option<Source>) -> i64 {
    loop {
        // An empty cell is left alone, so that its shared slot stays untouched.
        if cell.shared_value() == 0 && by_id(cell, source).fold(0, i64::wrapping_add) == 0 {
            return 0;
        }
        let of_ids = || by_id(cell, source).fold(0, i64::wrapping_add);
        if let Some(taken) = shared_slot::take(cell.shared(), of_ids) {
            return taken;
        }
    }
}
