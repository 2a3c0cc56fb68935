//! The words of a membership mask: tested before they are set, and drained with the barrier on the
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
//! *Why do the read-modify-writes have an order of their own?* Not for the processors: whoever has
//! taken a bit fences before it looks. But the language's memory model knows nothing of that fence,
//! and what is published may be plain memory: so setting releases and taking acquires. Nobody
//! learns anything from a bit that is clear, so nothing needs the opposite.
//!
//! *What if there is no such fence?* Then markers run the full barrier themselves, between what
//! they publish and their look at the set, and so do drainers between the removal and their look at
//! what was published ([`insert`], [`remove`]). The two barriers are in some order. If the marker's
//! is first, the drainer sees what was published. Else the marker sees the removal, and inserts. If
//! the kernel refuses the fence to a drainer later, nothing counts as taken: the bits are put back.
//!
//! Checked with every interleaving and every outcome of a load in `verify/loom` (where the light
//! fence is what the heavy one makes of it), and with store buffers in `verify/models`.

use crate::id::fence;
use crate::id::set::IdSet;
use crate::sys::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence as barrier,
};
use crate::sys::preserving_errno;

/// Whether `bit` is set, asked after what it announces was stored. If it is not, [`set`] it.
#[inline(always)]
pub(crate) fn is_set(word: &AtomicU64, bit: u64) -> bool {
    fence::light();
    word.load(Relaxed) & bit != 0
}

/// Sets bits.
pub(crate) fn set(word: &AtomicU64, bits: u64) {
    word.fetch_or(bits, Release);
}

/// Takes all bits out; what they announce is visible afterwards. None if the kernel refuses the
/// fence.
pub(crate) fn take<const N: usize>(words: &[AtomicU64; N]) -> [u64; N] {
    let taken = words.each_ref().map(take_word);
    if taken != [0; N] && preserving_errno(fence::all).is_err() {
        // Without the fence the bits must not be gone while a marker looks at them.
        put_back(words, &taken);
        return [0; N];
    }
    taken
}

fn take_word(word: &AtomicU64) -> u64 {
    // An empty word is left alone, so that its line stays where it is.
    if word.load(Relaxed) == 0 { 0 } else { word.swap(0, Acquire) }
}

/// Sets again what was taken.
pub(crate) fn put_back<const N: usize>(words: &[AtomicU64; N], taken: &[u64; N]) {
    for (word, &bits) in words.iter().zip(taken) {
        if bits != 0 {
            set(word, bits);
        }
    }
}

/// Makes `id` a member of a set whose drainers run no fence, after what it announces was stored.
pub(crate) fn insert(set: &IdSet, id: u32) {
    barrier(SeqCst);
    if !set.contains(id) {
        set.insert(id);
    }
}

/// Takes `id` out of such a set; what it announces is visible afterwards.
pub(crate) fn remove(set: &IdSet, id: u32) {
    set.remove(id);
    barrier(SeqCst);
}
