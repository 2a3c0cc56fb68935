//! A set of IDs that any thread may change at any time.

use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire},
};

use crate::arena::{Block, word};
use crate::sys::MAX_CPUS;

/// The words that lie in the set itself: enough for the IDs below 512.
const NEAR: usize = 8;

/// The words of a set for all IDs there can be.
const WORDS: usize = MAX_CPUS / 64;

/// The bytes of the words that lie elsewhere.
const FAR_BYTES: usize = (WORDS - NEAR) * 8;

/// The set. All zero is empty.
///
/// IDs from 512 on are kept in a block of their own, claimed when the first of them comes. If that
/// is not available, all of them are taken for members forever: no member may be missed, and one
/// that has nothing costs a visit.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct IdSet {
    near: [AtomicU64; NEAR],
    /// The address of the block; 0 if there is none, [`ALL`] if there can be none.
    far: AtomicUsize,
}

const ALL: usize = 1;

impl IdSet {
    pub(crate) const fn new() -> IdSet {
        IdSet { near: [const { AtomicU64::new(0) }; NEAR], far: AtomicUsize::new(0) }
    }

    /// Makes `id` a member.
    pub(crate) fn insert(&self, id: u32) {
        let index = id as usize / 64;
        if index >= NEAR && self.far.load(Acquire) == 0 {
            self.claim();
        }
        if let Some(word) = self.word(index) {
            word.fetch_or(bit(id), AcqRel);
        }
    }

    /// Makes `id` a member no longer.
    pub(crate) fn remove(&self, id: u32) {
        if let Some(word) = self.word(id as usize / 64) {
            word.fetch_and(!bit(id), AcqRel);
        }
    }

    /// Whether `id` is a member.
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.load(id as usize / 64) & bit(id) != 0
    }

    /// The members as words: ID 64 i + k is bit k of word i.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let end = if self.far.load(Acquire) == 0 { NEAR } else { WORDS };
        (0..end).map(|index| (index, self.load(index)))
    }

    /// The members below `end`: where all are taken for members, no more than `end` can be.
    pub(crate) fn words_below(&self, end: u32) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.words().filter_map(move |(index, bits)| {
            let ids = (end as usize).checked_sub(index * 64)?;
            let below = if ids < 64 { (1 << ids) - 1 } else { u64::MAX };
            Some((index, bits & below))
        })
    }

    /// Gives the memory back; the set is empty afterwards.
    pub(crate) fn clear(&mut self) {
        let far = *self.far.get_mut();
        if far > ALL {
            // SAFETY: `&mut self`: no other thread uses the set.
            unsafe { Block(far).release(FAR_BYTES) };
        }
        *self = IdSet::new();
    }

    fn load(&self, index: usize) -> u64 {
        match self.word(index) {
            Some(word) => word.load(Acquire),
            None if self.far.load(Acquire) == ALL => u64::MAX,
            None => 0,
        }
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        if let Some(word) = self.near.get(index) {
            return Some(word);
        }
        match self.far.load(Acquire) {
            0 | ALL => None,
            far => {
                let address = far + (index - NEAR).min(WORDS - NEAR - 1) * 8;
                // SAFETY: the word lies in the set's block, and these types have the same layout.
                Some(unsafe { &*word(address).cast::<AtomicU64>() })
            }
        }
    }

    #[cold]
    fn claim(&self) {
        let block = Block::claim(FAR_BYTES);
        let far = block.map_or(ALL, |block| block.0);
        if self.far.compare_exchange(0, far, AcqRel, Acquire).is_err() {
            if let Some(block) = block {
                // SAFETY: the exchange failed, so no other thread has seen this block.
                unsafe { block.release(FAR_BYTES) };
            }
        }
    }
}

fn bit(id: u32) -> u64 {
    1 << (id % 64)
}

/// The IDs of a word's bits.
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
        assert_eq!(members(&set), [0, 63, 511, 512, 8191]);
        set.clear();
        assert!(members(&set).is_empty());
    }

    #[test]
    fn without_memory_every_far_id_is_a_member() {
        let set = IdSet { near: [const { AtomicU64::new(0) }; NEAR], far: AtomicUsize::new(ALL) };
        set.insert(600);
        set.insert(3);
        set.remove(600);
        assert!(set.contains(600) && set.contains(3) && !set.contains(4));
        let below = |end| set.words_below(end).flat_map(|(index, bits)| ids(index, bits));
        assert_eq!(below(514).collect::<Vec<_>>(), [3, 512, 513]);
        assert_eq!((below(512).count(), below(3).count(), below(8192).count()), (1, 0, 8192 - 511));
    }
}
