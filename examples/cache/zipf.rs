//! The distribution of keys in caches: few are requested often, many seldom.

/// Zipf's distribution: key `k` of `0..keys` has a probability proportional to `1 / (k + 1)^skew`.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// The probability of this key or a smaller one.
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(keys: usize, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let weights = (1..=keys).map(|rank| (rank as f64).powf(-skew));
        let mut cumulative: Vec<f64> = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|share| *share /= sum);
        Zipf { cumulative }
    }

    /// Returns a key of this distribution.
    pub(crate) fn key(&self, random: &mut Random) -> u64 {
        let share = random.fraction();
        let key = self.cumulative.partition_point(|&cumulative| cumulative <= share);
        key.min(self.cumulative.len() - 1) as u64
    }
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Makes a generator for one of several threads: the same seed and thread give the same
    /// numbers.
    pub(crate) fn new(seed: u64, thread: usize) -> Random {
        let mut seeds = Random(seed);
        (0..thread).for_each(|_| _ = seeds.next());
        Random(seeds.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to but not including 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_as_often_as_they_should() {
        const DRAWS: usize = 200_000;
        for skew in [0.0, 0.8, 1.2] {
            let zipf = Zipf::new(100, skew);
            let mut random = Random::new(1, 0);
            let mut counts = [0.0; 100];
            (0..DRAWS).for_each(|_| counts[zipf.key(&mut random) as usize] += 1.0);
            let all: f64 = (1..=100).map(|rank| f64::from(rank).powf(-skew)).sum();
            for (rank, count) in (1..).zip(counts) {
                let expected = DRAWS as f64 * f64::from(rank).powf(-skew) / all;
                // Five standard deviations; the seed is fixed.
                assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{skew} {rank} {count}");
            }
        }
    }

    #[test]
    fn a_seed_gives_every_thread_numbers_of_its_own_and_the_same_ones_again() {
        let numbers = |seed, thread| {
            let mut random = Random::new(seed, thread);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(numbers(5, 2), numbers(5, 2));
        let all = [numbers(5, 0), numbers(5, 1), numbers(5, 2), numbers(6, 0)].concat();
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
