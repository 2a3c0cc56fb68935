//! The words of a membership mask: tested before they are set, and drained with the barrier on the
//! drainer's side.
//!
//! # The published system, and its lost barrier
//!
//! Linux 8f898fbbe5ee (2013) made a CPU test its bit in the mask of an address space before setting
//! it by a locked instruction, since the bit is nearly always set. But a locked instruction is a
//! full barrier too, and a thread that tests instead of setting lacks it: the load of the bit may
//! be executed before the store that publishes "I am active again". In the kernel exactly this had
//! to be fixed later by an explicit barrier (83b0177a6c48, 2025). Here the barrier is on the other
//! side: the drainer executes it on behalf of all threads.
//!
//! # The argument, by the questions of the published change's review
//!
//! *Writers of a bit.* Markers set it, each for the ID that it has published something for;
//! drainers clear it. Both do so by atomic read-modify-writes, so that no bit of a neighbour is
//! lost.
//!
//! *The order.* A marker *publishes, then marks*: the store that makes an item visible comes first
//! in program order, then [`fence::light`] (only a compiler barrier), then the load of the bit. A
//! drainer clears the bits, then executes [`fence::all`], then reads the published data. Take a
//! marker M and a drainer D that has cleared the bit that M loads. The fence makes M's CPU execute
//! a full barrier at some point between D's clearing and D's reading. If that point comes before
//! M's load, the load sees the bit clear (or set again later), and M sets it. If it comes after the
//! load, it comes after the publishing store as well, which is therefore visible when D reads. So
//! either D finds the item or the bit is set for the next drain. If M's thread is not running at
//! the time of the fence, the kernel's context switch was the barrier.
//!
//! *A stale bit is harmless.* A set bit without published data costs a drainer one needless visit.
//!
//! *No bit can be missing*, by the argument above: when `mark` has returned, the bit is set, or a
//! drainer that has not read yet will find the published data.
//!
//! *A thread may move between reading its ID and marking.* It then marks an ID that another thread
//! uses by now: a stale bit, or the right one, since its published data lies in that ID's memory.
//!
//! *The read-modify-writes have memory orders.* The processors do not need them: a thread that has
//! taken a bit fences before it reads. But the language's memory model does not contain that fence,
//! and the published data may be plain memory: so setting releases and taking acquires. No thread
//! concludes anything from a clear bit, so the opposite order is not needed.
//!
//! *If there is no such fence*, markers execute the full barrier themselves, between publishing and
//! their load of the set. So do drainers, between the removal and reading the published data
//! ([`insert`], [`remove`]). The two barriers are in some order. If the marker's is first, the
//! drainer sees the published data. Otherwise the marker sees the removal, and inserts. If the
//! kernel refuses the fence to a drainer later, nothing counts as taken: the bits are put back.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom` (where the heavy
//! fence defines the effect of the light one), and with store buffers in `verify/models`.

use crate::id::fence;
use crate::id::set::IdSet;
use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence as barrier,
};
use crate::sys::preserving_errno;

/// Returns `true` if `bit` is set. Must be called after the announced data was stored. If it is not
/// set, [`set`] it.
#[inline(always)]
pub(crate) fn is_set(word: &AtomicU64, bit: u64) -> bool {
    fence::light();
    word.load(Relaxed) & bit != 0
}

/// Sets bits.
pub(crate) fn set(word: &AtomicU64, bits: u64) {
    word.fetch_or(bits, Release);
}

/// Takes all bits out; the data that they announce is visible afterwards. Takes none if the kernel
/// refuses the fence.
pub(crate) fn take<const N: usize>(words: &[AtomicU64; N]) -> [u64; N] {
    let taken = words.each_ref().map(take_word);
    if taken != [0; N] && preserving_errno(fence::all).is_err() {
        // Without the fence the bits must not be missing while a marker loads them.
        put_back(words, &taken);
        return [0; N];
    }
    taken
}

fn take_word(word: &AtomicU64) -> u64 {
    // An empty word is not written, so that its cache line is not moved.
    if word.load(Relaxed) == 0 { 0 } else { word.swap(0, Acquire) }
}

/// Sets the taken bits again.
pub(crate) fn put_back<const N: usize>(words: &[AtomicU64; N], taken: &[u64; N]) {
    for (word, &bits) in words.iter().zip(taken) {
        if bits != 0 {
            set(word, bits);
        }
    }
}

/// Makes `id` a member of a set whose drainers execute no fence, after the announced data was
/// stored.
pub(crate) fn insert(set: &IdSet, id: u32) {
    barrier(SeqCst);
    if !set.contains(id) {
        set.insert(id);
    }
}

/// Removes `id` from such a set; the data that it announces is visible afterwards.
pub(crate) fn remove(set: &IdSet, id: u32) {
    set.remove(id);
    barrier(SeqCst);
}
