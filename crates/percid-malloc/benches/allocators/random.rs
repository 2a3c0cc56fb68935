//! Linear congruential numbers, with Knuth's constants.

pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a number from 0 on, and below the limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.number() >> 17) as usize % limit
    }

    /// Returns a number of 48 bits.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 16
    }
}
