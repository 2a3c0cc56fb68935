//! Results of second looks at nearby pages: whether an access came from the same node as the one
//! before.
//!
//! One word for 64 grains. The lower half counts accesses from the same node, the upper half those
//! from another node. Both are halved before they become large, so that only the last few thousand
//! count. Grains that are armed together are often all used by the thread that happens to run;
//! together they are only one random sample.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Maximum number of remembered looks.
const REMEMBERED: u32 = 4096;
/// Fewer looks than this give no result.
const TOO_FEW: u32 = 4;

fn parts(word: u32) -> (u32, u32) {
    (word & 0xffff, word >> 16)
}

/// Records the result of a second look. Async-signal-safe.
pub(crate) fn note(word: &AtomicU32, same: bool) {
    let _ = word.fetch_update(Relaxed, Relaxed, |word| {
        let (mut sames, mut others) = parts(word);
        if sames + others >= REMEMBERED {
            (sames, others) = (sames / 2, others / 2);
        }
        let (more_sames, more_others) = if same { (1, 0) } else { (0, 1) };
        Some((sames + more_sames) | ((others + more_others) << 16))
    });
}

/// Returns `true` if more than one look in four found another node. Then two equal looks in a row
/// mean little: with random accesses between two nodes it would be one in two.
pub(crate) fn are_doubtful(word: &AtomicU32) -> bool {
    let (sames, others) = parts(word.load(Relaxed));
    sames + others >= TOO_FEW && others * 4 > sames + others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_doubtful_and_what_has_become_steady_is_trusted_again() {
        let word = AtomicU32::new(0);
        (0..3).for_each(|_| note(&word, false));
        assert!(!are_doubtful(&word), "too few");
        (0..100_000).for_each(|turn| note(&word, turn % 2 == 0));
        assert!(are_doubtful(&word));
        let needed = (1..100_000).find(|_| {
            note(&word, true);
            !are_doubtful(&word)
        });
        assert!(needed.is_some_and(|needed| needed <= 4096), "{needed:?}");
        // Random results, but the same for 64 looks in a row.
        // Marsaglia's xorshift, with a fixed seed.
        let mut lots = 1u64;
        let mut chance = || {
            lots ^= lots << 13;
            lots ^= lots >> 7;
            lots ^= lots << 17;
            lots >> 20
        };
        let doubts = (0..2000).filter(|_| {
            let same = chance() & 1 == 0;
            (0..64).for_each(|_| note(&word, same));
            are_doubtful(&word)
        });
        let doubts = doubts.count();
        assert!(doubts > 1950, "{doubts}");
        // One in eight is not doubtful.
        (0..10_000).for_each(|turn| note(&word, turn % 8 != 0));
        assert!(!are_doubtful(&word));
    }
}
