//! The set of threads that used a region recently, one bit per thread.

/// 2^32 divided by the square of the golden ratio (Knuth, "The Art of Computer Programming", volume
/// 3, section 6.4), rounded to the value by which Linux multiplies thread numbers.
const GOLDEN: u32 = 0x61C8_8647;

/// Number of bits in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Width {
    /// 64 bits, the published size. Up to 34 threads with consecutive numbers have a bit each; from
    /// 129 on every bit is set, and activity carries no information.
    Bits64,
    /// 128 bits: up to 65 threads with consecutive numbers have a bit each.
    Bits128,
}

impl Width {
    /// Returns the number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Width::Bits64 => 64,
            Width::Bits128 => 128,
        }
    }

    /// Returns the bit of a thread: the uppermost bits of its number times a constant, modulo 2^32.
    /// Two threads may share a bit; then each counts as the other.
    pub fn bit(self, thread: u32) -> u32 {
        thread.wrapping_mul(GOLDEN) >> (32 - self.bits().trailing_zeros())
    }

    /// Returns the number of these threads that share their bit with an earlier one.
    pub fn collisions(self, threads: &[u32]) -> usize {
        let set = threads.iter().fold(0u128, |set, &thread| set | 1 << self.bit(thread));
        threads.len() - set.count_ones() as usize
    }
}

/// The threads that used a region in the current window and in the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Activity {
    before: u128,
    now: u128,
}

impl Activity {
    /// Adds a set of threads to the current window.
    pub(super) fn add(&mut self, threads: u128) {
        self.now |= threads;
    }

    /// Begins a new window and drops the one before the last.
    pub(super) fn end_window(&mut self) {
        *self = Activity { before: self.now, now: 0 };
    }

    /// Returns `true` if the bit of `thread` is set in either window.
    pub(super) fn has(self, width: Width, thread: u32) -> bool {
        (self.before | self.now) >> width.bit(thread) & 1 == 1
    }

    /// Returns the number of bits that are set in either window.
    pub(super) fn len(self) -> u32 {
        (self.before | self.now).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn consecutive_threads_collide_as_published() {
        let run = |length: u32| (4000..4000 + length).collect::<Vec<u32>>();
        assert_eq!((0..34).map(|n| Width::Bits64.collisions(&run(n))).sum::<usize>(), 0);
        assert_eq!(Width::Bits64.collisions(&run(129)), 129 - 64);
        assert_eq!(Width::Bits128.collisions(&run(65)), 0);
    }

    #[test]
    fn a_bit_is_the_top_of_the_product() {
        // Calculated manually: 0x61C88647 modulo 64 is 7.
        assert_eq!((Width::Bits64.bit(1 << 26), Width::Bits128.bit(1 << 26)), (7, 14));
    }

    #[test]
    fn a_window_is_remembered_for_one_more() {
        let (mut activity, width) = (Activity::default(), Width::Bits64);
        activity.add(1 << width.bit(7));
        activity.end_window();
        assert!(activity.has(width, 7));
        activity.end_window();
        assert!(!activity.has(width, 7));
        assert_eq!(activity.len(), 0);
    }

    #[test]
    fn a_thread_of_both_windows_is_one() {
        let (mut activity, width) = (Activity::default(), Width::Bits128);
        activity.add(1 << width.bit(7));
        activity.end_window();
        activity.add(1 << width.bit(7));
        assert_eq!((activity.has(width, 7), activity.len()), (true, 1));
    }
}
