//! Random numbers that are the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::exponentials::logarithm;

/// A generator whose sequence follows from its seed by a published algorithm, PCG XSL-RR 128/64
/// MCG. (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for
/// Random Number Generation", 2014.)
#[derive(Debug, Clone)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// Creates the generator for a seed.
    pub fn new(seed: u64) -> Random {
        Random(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Returns a number below `end`. All are equally likely, except for a bias below `end` / 2^64.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a number in the half-open range from 0 to 1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * logarithm(1.0 - self.unit())
    }

    /// Shuffles the items; all permutations are equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_part_of_the_interface() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..4).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, [856, 137, 470, 726], "results of the same seed must not change");
    }

    #[test]
    fn a_shuffle_keeps_all_items_and_reaches_every_order() {
        let mut random = Random::new(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut items = [1, 2, 3];
            random.shuffle(&mut items);
            seen.insert(items);
        }
        assert_eq!(seen.len(), 6);
    }

    /// Number of numbers whose distribution the tests check.
    const DRAWN: usize = 1_000_000;

    /// Largest accepted distance between the distribution of the drawn numbers and the exact one.
    ///
    /// The distance is that of Kolmogorov and Smirnov. Numbers of the exact distribution exceed a
    /// distance `d` with a probability of at most `2 exp(-2 DRAWN d^2)`, here 1e-9 for each seed
    /// (inequality of Dvoretzky, Kiefer and Wolfowitz, with the constant of Massart, 1990). The
    /// seeds are fixed, so a test that has passed cannot fail by chance later.
    fn max_distance() -> f64 {
        libm::sqrt(libm::log(2.0 / 1e-9) / (2.0 * DRAWN as f64))
    }

    /// Returns the distance between the distribution of drawn numbers and the exponential one with
    /// mean 1.
    fn distance(draw: impl FnMut() -> f64) -> f64 {
        let mut drawn: Vec<f64> = std::iter::repeat_with(draw).take(DRAWN).collect();
        drawn.sort_unstable_by(f64::total_cmp);
        let of_one = |(at, x): (usize, &f64)| {
            let exact = 1.0 - libm::exp(-x);
            let [below, up_to] = [at, at + 1].map(|count| count as f64 / DRAWN as f64);
            (exact - below).abs().max((up_to - exact).abs())
        };
        drawn.iter().enumerate().map(of_one).fold(0.0, f64::max)
    }

    #[test]
    fn exponential_numbers_have_their_distribution() {
        for seed in 1..4 {
            let mut random = Random::new(seed);
            let distance = distance(|| random.exponential(5.0) / 5.0);
            assert!(distance <= max_distance(), "seed {seed}: {distance}");
        }
    }

    /// Returns `true` if the number of large numbers is as expected. The distance says little about
    /// them because they are rare: 123.4 of a million exceed 9 on average. Fewer than 60 or more
    /// than 200 of the exact distribution have a probability of 1.8e-10, which is the binomial one.
    fn has_tail(draw: impl FnMut() -> f64) -> bool {
        let drawn = std::iter::repeat_with(draw).take(DRAWN);
        (60..=200).contains(&drawn.filter(|&x| x > 9.0).count())
    }

    #[test]
    fn exponential_numbers_have_their_tail() {
        for seed in 1..4 {
            let mut random = Random::new(seed);
            assert!(has_tail(|| random.exponential(1.0)), "seed {seed}");
            // The control: numbers that are 15 % too small.
            assert!(!has_tail(|| 0.85 * random.exponential(1.0)), "seed {seed}");
        }
    }

    /// The control: another mean, a missing tail, a table without interpolation, and missing small
    /// numbers are detected.
    #[test]
    fn other_distributions_have_a_larger_distance() {
        let mut random = Random::new(1);
        let mut draw = || random.exponential(1.0);
        assert!(distance(|| 1.02 * draw()) > max_distance(), "another mean");
        assert!(distance(|| draw().min(5.0)) > max_distance(), "no tail");
        assert!(distance(|| (64.0 * draw()).floor() / 64.0) > max_distance(), "steps");
        assert!(distance(|| draw() + 0.005) > max_distance(), "no small numbers");
    }
}
