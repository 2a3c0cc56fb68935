//! A set of IDs that any thread may change at any time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::set_words;
use crate::arena::{Block, word};
#[cfg(test)]
use crate::sys::steps::{self, Step};
use crate::sys::{MAX_CPUS, preserving_errno};

/// The words that lie in the set itself: enough for the IDs below 512.
const NEAR: usize = 8;

/// The number of words in a set of all possible IDs.
const WORDS: usize = MAX_CPUS / 64;

/// The bytes of the words outside the set.
const FAR_BYTES: usize = (WORDS - NEAR) * 8;

/// The set. All zero is empty.
///
/// IDs from 512 on are stored in a block of their own, which is claimed for the first of them. If
/// no block is available, all of them up to the largest inserted one count as members forever. No
/// member may be missed, and an empty member costs only a visit. Larger IDs do not count, because
/// callers have arrays for the IDs that they insert.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct IdSet {
    near: [AtomicU64; NEAR],
    /// The address of the block; 0 if there is none. Odd if there can be none: then half of it is
    /// one more than the largest inserted ID.
    far: AtomicUsize,
}

/// There can be no block, and no ID from 512 on was inserted.
const REFUSED: usize = 1;

impl IdSet {
    pub(crate) const fn new() -> IdSet {
        IdSet { near: [const { AtomicU64::new(0) }; NEAR], far: AtomicUsize::new(0) }
    }

    /// Makes `id` a member.
    pub(crate) fn insert(&self, id: u32) {
        #[cfg(test)]
        steps::at(Step::Insert(id));
        let index = id as usize / 64;
        if index >= NEAR {
            self.prepare(id);
        }
        if let Some(word) = self.word(index) {
            set_words::insert(word, bit(id));
        }
    }

    /// Removes `id` from the members.
    pub(crate) fn remove(&self, id: u32) {
        #[cfg(test)]
        steps::at(Step::Remove(id));
        if let Some(word) = self.word(id as usize / 64) {
            set_words::remove(word, bit(id));
        }
    }

    /// Returns `true` if `id` is a member.
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.load(id as usize / 64) & bit(id) != 0
    }

    /// Returns the members as words: ID 64 i + k is bit k of word i.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.words_from(0)
    }

    fn words_from(&self, first: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        let end = if set_words::published(&self.far) == 0 { NEAR } else { WORDS };
        (first..end).map(|index| (index, self.load(index)))
    }

    /// Returns the members below `end`.
    pub(crate) fn words_below(&self, end: u32) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.words_within(0, end)
    }

    /// Returns the first word from `first` on that has members below `end`.
    pub(crate) fn next_word(&self, first: usize, end: u32) -> Option<(usize, u64)> {
        self.words_within(first, end).find(|&(_, bits)| bits != 0)
    }

    fn words_within(&self, first: usize, end: u32) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.words_from(first).filter_map(move |(index, bits)| {
            let ids = (end as usize).checked_sub(index * 64)?;
            Some((index, bits & below(ids)))
        })
    }

    /// Frees the memory; the set is empty afterwards.
    pub(crate) fn clear(&mut self) {
        let far = *self.far.get_mut();
        if far != 0 && far & REFUSED == 0 {
            // SAFETY: `&mut self` guarantees that no other thread uses the set.
            unsafe { Block(far).release(FAR_BYTES) };
        }
        *self = IdSet::new();
    }

    /// Returns a set whose memory the arena has refused.
    #[cfg(test)]
    pub(crate) fn without_memory() -> IdSet {
        IdSet { far: AtomicUsize::new(REFUSED), ..IdSet::new() }
    }

    fn load(&self, index: usize) -> u64 {
        match self.word(index) {
            Some(word) => set_words::members(word),
            None => taken_for_members(set_words::published(&self.far), index),
        }
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        if let Some(word) = self.near.get(index) {
            return Some(word);
        }
        let far = set_words::published(&self.far);
        if far == 0 || far & REFUSED != 0 || index >= WORDS {
            return None;
        }
        // SAFETY: the word lies in the set's block, and these types have the same layout.
        Some(unsafe { &*word(far + (index - NEAR) * 8).cast::<AtomicU64>() })
    }

    /// Claims the block for the first far ID; without a block, records the largest ID.
    #[cold]
    fn prepare(&self, id: u32) {
        if set_words::published(&self.far) == 0 {
            preserving_errno(|| self.claim());
        }
        if set_words::published(&self.far) & REFUSED != 0 {
            // Relaxed: the number does not refer to other memory.
            self.far.fetch_max((id as usize + 1) << 1 | REFUSED, Relaxed);
        }
    }

    fn claim(&self) {
        let block = Block::claim(FAR_BYTES);
        let far = block.map_or(REFUSED, |block| block.0);
        let published = set_words::publish(&self.far, far);
        if let Some(block) = block.filter(|_| !published) {
            // SAFETY: the block was not published, so no other thread has access to it.
            unsafe { block.release(FAR_BYTES) };
        }
    }
}

/// Returns the word at `index` of a set without a block.
fn taken_for_members(far: usize, index: usize) -> u64 {
    let end = if far & REFUSED == 0 { 0 } else { far >> 1 };
    below(end.saturating_sub(index * 64))
}

/// Returns a word with the lowest `count` bits set.
fn below(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

fn bit(id: u32) -> u64 {
    1 << (id % 64)
}

/// Returns the IDs of a word's bits.
pub(crate) fn ids(index: usize, mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(index as u32 * 64 + lowest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(set: &IdSet) -> Vec<u32> {
        set.words().flat_map(|(index, bits)| ids(index, bits)).collect()
    }

    #[test]
    fn members_near_and_far_come_and_go() {
        let mut set = IdSet::new();
        let all = [0, 63, 64, 511, 512, 700, 8191];
        all.iter().for_each(|&id| set.insert(id));
        assert_eq!(members(&set), all);
        assert!(set.contains(700) && !set.contains(701));
        set.remove(64);
        set.remove(700);
        set.remove(0);
        assert_eq!(members(&set), [63, 511, 512, 8191]);
        set.clear();
        assert!(members(&set).is_empty());
    }

    #[test]
    fn without_memory_far_ids_up_to_the_largest_that_came_are_members() {
        let set = IdSet::without_memory();
        assert!(members(&set).is_empty());
        set.insert(600);
        set.insert(3);
        set.remove(600);
        set.insert(514);
        assert!(set.contains(600) && set.contains(3) && !set.contains(4));
        assert!(!set.contains(601) && !set.contains(1112) && !set.contains(8191));
        assert_eq!(members(&set), Vec::from_iter([3].into_iter().chain(512..=600)));
        let below = |end| set.words_below(end).flat_map(|(index, bits)| ids(index, bits));
        assert_eq!(below(514).collect::<Vec<_>>(), [3, 512, 513]);
        assert_eq!((below(512).count(), below(3).count(), below(8192).count()), (1, 0, 90));
    }

    #[test]
    fn what_no_cpu_can_have_is_no_member() {
        let mut set = IdSet::new();
        set.insert(8191);
        assert!(set.contains(8191) && !set.contains(8191 + 64) && !set.contains(16383));
        assert!(!set.contains(u32::MAX));
        set.clear();
    }
}
