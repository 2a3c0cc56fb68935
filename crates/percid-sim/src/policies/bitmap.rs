//! Set of a process's taken IDs, one bit each.

use super::policy::Id;

/// A set of IDs below a bound that is fixed at creation.
#[derive(Debug, Clone)]
pub(super) struct Bitmap {
    words: Vec<u64>,
    end: u32,
    weight: u32,
}

impl Bitmap {
    /// Creates a set in which no ID below `end` is taken.
    pub(super) fn new(end: u32) -> Bitmap {
        Bitmap { words: vec![0; end.div_ceil(64) as usize], end, weight: 0 }
    }

    /// Takes `id`. Returns `false` if it was already taken, or is not below the end.
    pub(super) fn take(&mut self, id: Id) -> bool {
        let bit = 1 << (id % 64);
        let free = id < self.end && self.words[id as usize / 64] & bit == 0;
        if free {
            self.words[id as usize / 64] |= bit;
            self.weight += 1;
        }
        free
    }

    /// Takes the lowest free ID if it is below `end`. Cost: linear in the number of words.
    pub(super) fn take_first_below(&mut self, end: u32) -> Option<Id> {
        let index = self.words.iter().position(|&word| word != u64::MAX)?;
        let id = index as u32 * 64 + self.words[index].trailing_ones();
        (id < end && self.take(id)).then_some(id)
    }

    /// Frees `id`, which must be taken.
    pub(super) fn free(&mut self, id: Id) {
        assert!(self.words[id as usize / 64] >> (id % 64) & 1 == 1, "ID {id} freed twice");
        self.words[id as usize / 64] &= !(1 << (id % 64));
        self.weight -= 1;
    }

    /// Returns the number of taken IDs.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// Frees all IDs.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.weight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_id_comes_first_and_the_end_is_kept() {
        let mut bits = Bitmap::new(70);
        for id in 0..70 {
            assert_eq!(bits.take_first_below(70), Some(id));
        }
        assert_eq!(bits.take_first_below(70), None);
        assert!(!bits.take(3) && !bits.take(70));
        bits.free(66);
        assert_eq!((bits.weight(), bits.take_first_below(66)), (69, None));
        assert_eq!(bits.take_first_below(67), Some(66));
        bits.clear();
        assert_eq!((bits.weight(), bits.take_first_below(1)), (0, Some(0)));
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn freeing_twice_is_caught() {
        let mut bits = Bitmap::new(1);
        bits.take(0);
        bits.free(0);
        bits.free(0);
    }
}
