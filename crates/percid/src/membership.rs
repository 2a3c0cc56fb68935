//! One word of a membership mask: tested before it is set, and drained with the barrier on the
//! drainer's side.
//!
//! # The published system, and its lost barrier
//!
//! Linux 8f898fbbe5ee (2013) made a CPU test its bit in the mask of an address space before setting
//! it by a locked instruction, since the bit is nearly always set. But a locked instruction is a
//! full barrier too, and a thread that tests instead of setting loses it: the load of the bit may
//! be carried out before the store that says "I am active again". In the kernel exactly this had to
//! be mended later by an explicit barrier (83b0177a6c48, 2025). Here it comes back on the other
//! side: the drainer runs the barrier on behalf of all threads.
//!
//! # The argument: the questions that reviewers asked of the published change
//!
//! *Who writes a bit?* Markers set it, each for the ID that it has published something for;
//! drainers clear it. Both by atomic read-modify-writes, so that no bit of a neighbour is lost.
//!
//! *What orders it?* A marker *publishes, then marks*: the store that makes an item visible comes
//! first in program order, then [`fence::light`] (nothing but a barrier to the compiler), then the
//! load of the bit. A drainer clears the bits, then runs [`fence::all`], then looks for what was
//! published. Take a marker M and a drainer D that has cleared the bit that M loads. The fence
//! makes M's CPU go through a full barrier at some point between D's clearing and D's looking. If
//! that point comes before M's load, the load sees the bit clear (or set again later), and M sets
//! it. If it comes after the load, it comes after the publishing store as well, which is therefore
//! visible when D looks. So either D finds the item or the bit is set for the next drain. If M's
//! thread is not running at the time of the fence, the kernel's switch has been the barrier.
//!
//! *Why is a stale bit harmless?* A set bit without anything behind it costs a drainer one needless
//! visit.
//!
//! *Why can no bit be missing?* By the argument above: when `mark` has returned, the bit is set, or
//! a drainer that has not looked yet will find what was published.
//!
//! *What if a thread moves between learning its ID and marking?* It then marks an ID that another
//! thread uses by now: a stale bit, or the right one, since what it published lies in that ID's
//! memory.
//!
//! *What if there is no such fence?* Then markers run the full barrier themselves and do not test
//! first: see [`ActiveMask`](crate::ActiveMask).
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom` (where the light
//! fence is what the heavy one makes of it), and with store buffers in `verify/models`.

use crate::id::fence;
use crate::sys::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

/// Whether `bit` is set, asked after what it announces was stored. If it is not, [`set`] it.
#[inline(always)]
pub(crate) fn is_set(word: &AtomicU64, bit: u64) -> bool {
    fence::light();
    word.load(Relaxed) & bit != 0
}

/// Sets a bit.
pub(crate) fn set(word: &AtomicU64, bit: u64) {
    word.fetch_or(bit, AcqRel);
}

/// Takes all bits out. Run [`fence::all`] before looking at what they announce.
pub(crate) fn take(word: &AtomicU64) -> u64 {
    // An empty word is left alone, so that its line stays where it is.
    if word.load(Relaxed) == 0 { 0 } else { word.swap(0, AcqRel) }
}
