//! The active mask: the IDs with work that another thread must visit.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::fence;
use crate::id::set::{IdSet, ids};
use crate::membership;
use crate::sys::race_detector;

/// Words whose members are tested before they are marked: one cache line, for the IDs below 512.
const FAST: usize = 8;

/// The IDs that have something to flush: a cache that is not empty, a batch that is pending, an
/// epoch that is pinned.
///
/// [`mark`](ActiveMask::mark) is for the hot path of every operation: a load and a test while the
/// bit is set, so the mask's cache line stays shared by all CPUs. [`drain`](ActiveMask::drain)
/// visits only the members, and misses none. It is the mask of the CPUs that may hold an address
/// space's translations (Linux 8f898fbbe5ee) for programs. The barrier that was lost there is on
/// the drainer's side here; `membership.rs` contains the correctness argument.
///
/// ```
/// use percid::ActiveMask;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// static PENDING: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
/// static ACTIVE: ActiveMask = ActiveMask::new();
///
/// // On the hot path, for the data of ID 2: publish, then mark.
/// PENDING[2].store(7, Relaxed);
/// ACTIVE.mark(2);
///
/// // Now and then, somewhere else:
/// let mut flushed = 0;
/// ACTIVE.drain(|id| flushed += PENDING[id as usize].swap(0, Relaxed));
/// assert_eq!(flushed, 7);
/// assert!(!ACTIVE.is_marked(2));
/// ```
///
/// # Contract
///
/// * **Order**: publish what the mark announces *before* [`mark`](ActiveMask::mark). Then a drain
///   that begins after `mark` has returned visits the ID and finds the published data, unless
///   another drain has taken the mark, which then finds them.
/// * **A drain may miss** data that is published while it runs. The mark is then set for the next
///   one.
/// * **Stale marks** are possible and cost a needless visit. No ID is visited that is larger than
///   all that were ever marked. If the memory for IDs from 512 on is refused, every drain visits
///   all of them up to the largest that was marked.
/// * **Threads**: every method may be called by any number of threads at once.
/// * **Signals**: `mark` is async-signal-safe and preserves `errno`. So does `drain` if its visitor
///   does.
/// * **Async**: no method returns a guard, so nothing is held across `.await`.
/// * **Fork**: the child's mask is a copy of the parent's, without the members that another thread
///   of the parent had taken out and not visited yet.
/// * **Memory**: 192 bytes; 1 KiB more once an ID of 512 or more is marked.
/// * **Cost**: `mark` one load and a test if the bit is set, otherwise one locked instruction; IDs
///   from 512 on need a full barrier each time. So do all IDs if the kernel has no fence (before
///   Linux 5.10, or sandboxed). `drain` one fence, about 10 us, if there is any member; otherwise 9
///   loads. The first call that sets a bit registers the process for the fence: 2 us early in
///   `main`, 20 ms later.
#[repr(C, align(64))]
pub struct ActiveMask {
    fast: [AtomicU64; FAST],
    /// The members that were marked after a full barrier.
    slow: IdSet,
}

/// Offsets and sizes that C programs contain as numbers: they define masks in static storage, and
/// mark inline.
#[cfg(all(feature = "capi", target_pointer_width = "64"))]
const _: () = {
    assert!(size_of::<ActiveMask>() == 192);
    assert!(std::mem::offset_of!(ActiveMask, fast) == 0);
};

impl ActiveMask {
    /// Creates a mask without members.
    ///
    /// ```
    /// static ACTIVE: percid::ActiveMask = percid::ActiveMask::new();
    /// assert!(!ACTIVE.is_marked(0));
    /// ```
    #[must_use]
    pub const fn new() -> ActiveMask {
        ActiveMask { fast: [const { AtomicU64::new(0) }; FAST], slow: IdSet::new() }
    }

    /// Makes `id` a member, after something was published that a drain must find.
    ///
    /// ```
    /// let active = percid::ActiveMask::new();
    /// // ... publish something for ID 3, then:
    /// active.mark(3);
    /// assert!(active.is_marked(3));
    /// ```
    ///
    /// # Panics
    ///
    /// If `id` is at least 8192, the maximum number of CPUs of any kernel.
    #[inline(always)]
    pub fn mark(&self, id: u32) {
        let word = self.fast.get(id as usize / 64);
        if !word.is_some_and(|word| membership::is_set(word, bit(id))) {
            self.mark_slowly(id);
        }
    }

    /// Returns `true` if `id` is currently a member.
    ///
    /// ```
    /// let active: percid::ActiveMask = [1, 5].into_iter().collect();
    /// assert!(active.is_marked(5) && !active.is_marked(2));
    /// ```
    #[must_use]
    pub fn is_marked(&self, id: u32) -> bool {
        let word = self.fast.get(id as usize / 64);
        word.is_some_and(|word| word.load(Relaxed) & bit(id) != 0) || self.slow.contains(id)
    }

    /// Takes all members out and visits each. Everything that was published before they were marked
    /// is visible to the visitor. Returns the number of members.
    ///
    /// If the visitor panics, the members that were not passed to it stay members.
    ///
    /// ```
    /// let active: percid::ActiveMask = [1, 5].into_iter().collect();
    /// let mut visited = Vec::new();
    /// assert_eq!(active.drain(|id| visited.push(id)), 2);
    /// assert_eq!(visited, [1, 5]);
    /// ```
    pub fn drain(&self, mut visit: impl FnMut(u32)) -> usize {
        let mut draining = self.drain_iter();
        let mut visited = 0;
        while let Some(id) = draining.next() {
            visited += 1;
            visit(id);
        }
        visited
    }

    /// Begins a drain that returns one member after the other: for C functions, which may end the
    /// thread or jump, and must not do so across percid's frames.
    #[doc(hidden)]
    pub fn drain_iter(&self) -> Drain<'_> {
        Drain { mask: self, fast: membership::take(&self.fast), slow: (0, 0) }
    }

    /// Returns the key of an ID of this mask for race detectors.
    fn key(&self, id: u32) -> usize {
        std::ptr::from_ref(self).addr() + id as usize % size_of_val(&self.fast)
    }

    #[cold]
    #[inline(never)]
    fn mark_slowly(&self, id: u32) {
        race_detector::release(self.key(id));
        match self.fast.get(id as usize / 64) {
            // A detector must be notified of every mark: then no mark is fast.
            Some(word) if fence::is_asymmetric() => membership::set(word, bit(id)),
            _ => {
                assert!((id as usize) < crate::sys::MAX_CPUS, "no CPU can have the ID {id}");
                membership::insert(&self.slow, id);
            }
        }
    }
}

fn bit(id: u32) -> u64 {
    1 << (id % 64)
}

/// A drain, member by member. If it is dropped before its end, the members that it has not returned
/// stay.
#[doc(hidden)]
#[derive(Debug)]
#[must_use]
pub struct Drain<'m> {
    mask: &'m ActiveMask,
    /// The members that were taken and not returned yet.
    fast: [u64; FAST],
    /// The same for the current word of the other members, which stay members until then, and the
    /// number of the next word.
    slow: (u64, usize),
}

impl Drain<'_> {
    /// Returns the next member.
    #[doc(hidden)]
    pub fn next(&mut self) -> Option<u32> {
        let id = self.next_fast().or_else(|| self.next_slow())?;
        race_detector::acquire(self.mask.key(id));
        Some(id)
    }

    fn next_fast(&mut self) -> Option<u32> {
        let index = self.fast.iter().position(|&bits| bits != 0)?;
        take_lowest(&mut self.fast[index], index)
    }

    fn next_slow(&mut self) -> Option<u32> {
        let (bits, next) = &mut self.slow;
        if *bits == 0 {
            let (index, members) = self.mask.slow.next_word(*next, u32::MAX)?;
            (*bits, *next) = (members, index + 1);
        }
        let id = take_lowest(bits, *next - 1)?;
        membership::remove(&self.mask.slow, id);
        Some(id)
    }
}

/// Removes the lowest ID from a word of a set, and returns it.
fn take_lowest(bits: &mut u64, index: usize) -> Option<u32> {
    let id = ids(index, *bits).next();
    *bits &= bits.wrapping_sub(1);
    id
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        membership::put_back(&self.mask.fast, &self.fast);
    }
}

impl Extend<u32> for ActiveMask {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, ids: I) {
        ids.into_iter().for_each(|id| self.mark(id));
    }
}

impl FromIterator<u32> for ActiveMask {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> ActiveMask {
        let mut mask = ActiveMask::new();
        mask.extend(ids);
        mask
    }
}

impl Default for ActiveMask {
    fn default() -> Self {
        ActiveMask::new()
    }
}

impl fmt::Debug for ActiveMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fast = self.fast.iter().map(|word| word.load(Relaxed)).enumerate();
        let members = fast.chain(self.slow.words()).flat_map(|(index, bits)| ids(index, bits));
        f.debug_set().entries(members).finish()
    }
}

impl Drop for ActiveMask {
    fn drop(&mut self) {
        self.slow.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn drained(mask: &ActiveMask) -> Vec<u32> {
        let mut ids = Vec::new();
        assert_eq!(mask.drain(|id| ids.push(id)), ids.len());
        ids
    }

    #[test]
    fn members_are_visited_once() {
        let mask = ActiveMask::new();
        let all = [0, 1, 63, 64, 511, 512, 8191];
        for id in all {
            mask.mark(id);
            mask.mark(id);
            assert!(mask.is_marked(id));
        }
        assert_eq!(drained(&mask), all);
        assert!(all.iter().all(|&id| !mask.is_marked(id)));
        assert!(drained(&mask).is_empty());
    }

    #[test]
    fn a_visitor_that_panics_leaves_the_others_marked() {
        let mask = ActiveMask::new();
        for id in [3, 70, 600] {
            mask.mark(id);
        }
        for expected in [3, 70, 600] {
            let visit = || {
                mask.drain(|id| {
                    assert_eq!(id, expected);
                    panic!("on purpose");
                })
            };
            assert!(catch_unwind(AssertUnwindSafe(visit)).is_err());
            assert!(!mask.is_marked(expected));
        }
        assert!(drained(&mask).is_empty());
    }

    /// Tests members in every word, and any number of them.
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_drain_fences_once_and_only_if_there_is_a_member() {
        use crate::sys::steps::{self, Fence, Step};
        use std::sync::atomic::AtomicUsize;

        if !fence::is_asymmetric() {
            return percid_skips::not_checked("fences of a mask's drain", "there are none");
        }
        static FENCES: AtomicUsize = AtomicUsize::new(0);
        let _watching = steps::watch(|step| {
            FENCES.fetch_add(usize::from(step == Step::Membarrier(Fence::OfAll)), Relaxed);
            None
        });
        let all: &[&[u32]] = &[&[], &[0], &[63], &[64], &[511], &[0, 63, 64, 511], &[]];
        for ids in all {
            let mask: ActiveMask = ids.iter().copied().collect();
            FENCES.store(0, Relaxed);
            assert_eq!(mask.drain(drop), ids.len());
            assert_eq!(FENCES.load(Relaxed), usize::from(!ids.is_empty()), "{ids:?}");
        }
    }

    #[test]
    fn a_mark_during_a_drain_is_for_the_next() {
        let mask = ActiveMask::new();
        mask.mark(5);
        assert_eq!(mask.drain(|id| mask.mark(id)), 1);
        assert_eq!(drained(&mask), [5]);
    }

    #[test]
    fn no_other_id_is_marked() {
        const BEYOND: u32 = if cfg!(miri) { 8200 } else { 20_000 };
        let mask = ActiveMask::new();
        mask.mark(8191);
        mask.mark(511);
        let marked = (0..BEYOND).filter(|&id| mask.is_marked(id));
        assert_eq!(marked.collect::<Vec<_>>(), [511, 8191]);
        assert!(!mask.is_marked(u32::MAX));
    }

    /// The visitor has an array for the IDs that it marks.
    #[test]
    fn without_memory_no_id_beyond_the_largest_marked_is_visited() {
        let mut mask = ActiveMask::new();
        mask.slow = IdSet::without_memory();
        let mut visits = [0; 600];
        mask.mark(599);
        mask.mark(7);
        for _ in 0..2 {
            mask.drain(|id| visits[id as usize] += 1);
        }
        assert_eq!((visits[7], visits[599]), (1, 2));
        assert!(!mask.is_marked(600) && !mask.is_marked(8191));
    }

    #[test]
    #[should_panic(expected = "no CPU can have the ID 8192")]
    fn an_impossible_id_is_refused() {
        ActiveMask::new().mark(8192);
    }
}
