//! The set of threads that used a region of late.

/// The multiplier of the hash: 2^32 divided by the golden ratio squared (Knuth, "The Art of Computer
/// Programming", volume 3, section 6.4; the value is the one that Linux uses).
const MULTIPLIER: u32 = 0x61C8_8647;

/// How many bits a set has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// As published: one machine word.
    Bits64,
    /// The idea that was never built.
    Bits128,
}

impl Width {
    /// The number of bits.
    pub fn bits(self) -> u32 {
        1 << self.log2()
    }

    fn log2(self) -> u32 {
        match self {
            Width::Bits64 => 6,
            Width::Bits128 => 7,
        }
    }

    /// The bit of a thread: the upper bits of its ID times the multiplier, modulo 2^32.
    pub fn hash(self, thread: u32) -> u32 {
        thread.wrapping_mul(MULTIPLIER) >> (32 - self.log2())
    }

    /// The bit that the lower bits of the ID would give.
    pub fn low_bits(self, thread: u32) -> u32 {
        thread & (self.bits() - 1)
    }
}

/// A set of threads, one bit each. Two threads may have the same bit: then each passes for the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity(u128);

impl Activity {
    /// Adds a thread.
    pub fn insert(&mut self, width: Width, thread: u32) {
        self.0 |= 1 << width.hash(thread);
    }

    /// Whether a thread is in it, or another one with the same bit.
    pub fn contains(self, width: Width, thread: u32) -> bool {
        self.0 & (1 << width.hash(thread)) != 0
    }

    /// The members of either set.
    pub fn union(self, other: Activity) -> Activity {
        Activity(self.0 | other.0)
    }

    /// The number of distinct bits.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether nobody is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_and_a_collision_passes_for_one() {
        for width in [Width::Bits64, Width::Bits128] {
            let mut set = Activity::default();
            set.insert(width, 4570);
            let found: Vec<u32> = (4000..6000).filter(|&id| set.contains(width, id)).collect();
            assert!(found.contains(&4570) && found.len() > 1, "{found:?}");
            assert!(found.iter().all(|&id| width.hash(id) == width.hash(4570)));
            assert_eq!((set.len(), set.is_empty()), (1, false));
        }
    }

    #[test]
    fn the_wider_hash_refines_the_narrower_one() {
        for thread in 1..10_000 {
            assert_eq!(Width::Bits128.hash(thread) >> 1, Width::Bits64.hash(thread));
        }
    }
}
