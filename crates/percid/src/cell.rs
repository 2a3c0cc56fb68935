//! Cells: one 64-bit word per ID that is only added to. A counter is one, a histogram is thousands.

use std::sync::atomic::Ordering::Relaxed;

use crate::arena::Block;
use crate::critical::by_mark;
use crate::handle::{self, Handle, Needs, State};
use crate::id::{self, RESTART_LIMIT, Source};
use crate::shared_slot;
use crate::sys::preserving_errno;

/// The fast path: adds `n` to this CPU's shard of a word. Returns whether it did.
///
/// # Safety
///
/// `word` is the word of a structure's handle, plus the offset of a word in its block.
#[inline(always)]
pub(crate) unsafe fn add_fast(word: usize, n: i64) -> bool {
    // SAFETY: by contract; a handle gets its mark after the source has been prepared.
    unsafe { by_mark!(word, add(n), else false) }
}

/// The slow path of an addition to the word `offset` bytes into a structure of `bytes` bytes: first
/// use, no ID, an aborted section.
pub(crate) fn add_slowly(handle: &Handle, bytes: usize, offset: usize, n: i64) {
    if let Some(block) = handle.atomic_block() {
        return add_at_hint(block.at(offset), n);
    }
    preserving_errno(|| match handle.settle(Needs::Sections, bytes) {
        State::Claimed(block, source) => add(block.at(offset), source, n),
        State::Inline(_) | State::Unclaimed => handle.count_inline(n),
    });
}

/// Adds through the source, trying a bounded number of times, then to the shared slot.
fn add(cell: Block, source: Option<Source>, n: i64) {
    match source {
        None => add_shared(cell, n),
        Some(Source::Atomic) => add_at_hint(cell, n),
        Some(source) => {
            for _ in 0..RESTART_LIMIT {
                if try_once(handle::marked(cell, source), n) {
                    return;
                }
                if !source.ensure_id() {
                    break;
                }
            }
            add_shared(cell, n);
        }
    }
}

/// Out of line, so that an unrolled loop does not repeat the sections.
#[inline(never)]
fn try_once(word: usize, n: i64) -> bool {
    // SAFETY: a word of a block that was claimed for the source whose mark it has.
    unsafe { add_fast(word, n) }
}

/// What the atomic source does.
fn add_at_hint(cell: Block, n: i64) {
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
    shared_slot::sum(cell.shared_if_used(), || of_ids(cell, source))
}

/// Takes the total and leaves zero, or what is added meanwhile.
///
/// Lock-free: it starts over if another `take`, or an addition without an ID, comes in between.
pub(crate) fn take(cell: Block, source: Option<Source>) -> i64 {
    loop {
        // An empty cell is left alone, so that its shared slot stays untouched.
        if sum(cell, source) == 0 {
            return 0;
        }
        if let Some(taken) = shared_slot::take(cell.shared(), || of_ids(cell, source)) {
            return taken;
        }
    }
}

/// What was added without an ID, less what was taken.
pub(crate) fn shared(cell: Block) -> i64 {
    shared_slot::sum(cell.shared_if_used(), || 0)
}

fn of_ids(cell: Block, source: Option<Source>) -> i64 {
    by_id(cell, source).fold(0, i64::wrapping_add)
}
