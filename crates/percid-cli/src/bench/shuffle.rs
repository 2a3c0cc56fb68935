//! Reproducible random orders.

/// A SplitMix64 generator: one word of state, every seed is good, and the sequence is the same on
/// every machine.
#[derive(Clone, Debug)]
pub(crate) struct Shuffler {
    state: u64,
}

impl Shuffler {
    pub(crate) fn new(seed: u64) -> Self {
        Shuffler { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Shuffles `items` (Fisher-Yates; the bias of the remainder is negligible for this purpose).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let pick = self.next() % (end as u64 + 1);
            items.swap(end, pick as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_item_and_repeats_for_a_seed() {
        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..50).collect();
            Shuffler::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(7), shuffled(7));
        assert_ne!(shuffled(7), shuffled(8));
        let mut sorted = shuffled(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }
}
