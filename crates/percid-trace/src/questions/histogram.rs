//! Histogram of times: counts by size, with exact count, sum and maximum.

use serde::Serialize;

/// Counts of times, in four classes for each power of two of a microsecond.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Number of times.
    pub count: u64,
    /// All of them together, in nanoseconds.
    pub sum_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// Counts by class, up to the largest class that is not empty.
    classes: Vec<u32>,
}

/// Times between two powers of two of a microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// The times are below this one, in nanoseconds.
    pub below_ns: u64,
    /// Number of times in this bin.
    pub count: u64,
}

/// Standard deviations on either side of a normal distribution's mean that contain 95 in 100.
const Z: f64 = 1.96;

/// A quarter of a microsecond, the width of the smallest classes.
const QUARTER: u64 = 250;

impl Histogram {
    /// Counts a time.
    pub fn note(&mut self, ns: u64) {
        let class = class(ns);
        if class >= self.classes.len() {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] = self.classes[class].saturating_add(1);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts all that another one has counted.
    pub fn add(&mut self, other: &Histogram) {
        if other.classes.len() > self.classes.len() {
            self.classes.resize(other.classes.len(), 0);
        }
        for (count, more) in self.classes.iter_mut().zip(&other.classes) {
            *count = count.saturating_add(*more);
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean, in nanoseconds; `None` if nothing was counted.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }

    /// A time that this share of all does not exceed, and at most a quarter above the smallest such
    /// time, or a quarter of a microsecond; `None` if nothing was counted.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        self.class_of(rank).map(|class| end(class).min(self.max_ns))
    }

    /// The class of the time with a rank: that of the shortest is 1.
    fn class_of(&self, rank: u64) -> Option<usize> {
        let mut counted = 0;
        self.classes.iter().position(|&count| {
            counted += u64::from(count);
            counted >= rank
        })
    }

    /// Returns times between which the quantile of what was sampled lies in 95 of 100 such samples, in
    /// nanoseconds; `None` if there are too few for that. The times must not depend on each other.
    ///
    /// The method uses ranks of a binomial distribution and assumes nothing about the times (W. J. Conover, *Practical
    /// Nonparametric Statistics*, 3rd ed. 1999, section 3.2, with its normal approximation).
    pub fn quantile_between_ns(&self, share: f64) -> Option<(u64, u64)> {
        let count = self.count as f64;
        let (rank, spread) = (share * count, Z * (share * (1.0 - share) * count).sqrt());
        let (low, high) = ((rank - spread).floor(), (rank + spread).ceil());
        if low < 1.0 || high > count {
            return None;
        }
        let (low, high) = (self.class_of(low as u64)?, self.class_of(high as u64)?);
        Some((low.checked_sub(1).map_or(0, end), end(high).min(self.max_ns)))
    }

    /// Returns times between which the mean of what was sampled lies in 95 of 100 such samples, in
    /// nanoseconds; `None` if there are fewer than 30. The times must not depend on each other, and their
    /// deviation is that of the middles of their classes.
    pub fn mean_between_ns(&self) -> Option<(u64, u64)> {
        let mean = self.mean_ns().filter(|_| self.count >= 30)? as f64;
        let squares = self.classes.iter().enumerate().map(|(class, &count)| {
            let middle = (class.checked_sub(1).map_or(0, end) + end(class)) as f64 / 2.0;
            f64::from(count) * (middle - mean).powi(2)
        });
        let deviation = (squares.sum::<f64>() / (self.count - 1) as f64).sqrt();
        let spread = Z * deviation / (self.count as f64).sqrt();
        Some(((mean - spread).max(0.0) as u64, (mean + spread) as u64))
    }

    /// The counts by powers of two, from the first to the last that is not empty.
    pub fn bins(&self) -> Vec<Bin> {
        let Some(first) = self.classes.iter().position(|&count| count > 0) else {
            return Vec::new();
        };
        let mut bins: Vec<Bin> = Vec::new();
        for (class, &count) in self.classes.iter().enumerate().skip(first) {
            let (below_ns, count) = (octave_end(class), u64::from(count));
            match bins.last_mut() {
                Some(last) if last.below_ns == below_ns => last.count += count,
                _ => bins.push(Bin { below_ns, count }),
            }
        }
        bins
    }
}

/// Class 0 is below a microsecond; then come four for each power of two.
fn class(ns: u64) -> usize {
    let quarters = ns / QUARTER;
    match quarters.checked_ilog2().and_then(|log| log.checked_sub(2)) {
        None => 0,
        Some(octave) => 1 + 4 * octave as usize + (quarters >> octave & 3) as usize,
    }
}

/// The times of a class are below this one, in nanoseconds.
fn end(class: usize) -> u64 {
    let Some(nth) = class.checked_sub(1) else { return 4 * QUARTER };
    QUARTER.saturating_mul((5 + nth as u64 % 4).saturating_mul(1 << (nth / 4).min(60)))
}

fn octave_end(class: usize) -> u64 {
    match class {
        0 => end(0),
        _ => end((class - 1) / 4 * 4 + 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_sim::random::Random;

    fn histogram(times: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        times.iter().for_each(|&ns| histogram.note(ns));
        histogram
    }

    #[test]
    fn every_time_is_in_its_class_and_no_other() {
        let times = (0..40_000).chain((0..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit]));
        for ns in times {
            let class = class(ns);
            assert!(ns < end(class), "{ns}");
            assert!(class == 0 || ns >= end(class - 1), "{ns}");
        }
        assert!(class(u64::MAX) < 256);
    }

    #[test]
    fn quantiles_are_right_to_a_quarter() {
        let mut random = Random::new(5);
        let mut times: Vec<u64> =
            (0..10_000).map(|_| random.exponential(50_000.0) as u64).collect();
        let histogram = histogram(&times);
        times.sort_unstable();
        for share in [0.01, 0.5, 0.9, 0.99, 0.999] {
            let exact = times[(share * times.len() as f64).ceil() as usize - 1];
            let found = histogram.quantile_ns(share).expect("there are times");
            assert!(found >= exact && found <= (exact * 5 / 4).max(exact + 1000), "{share}");
        }
        assert_eq!(histogram.quantile_ns(1.0), times.last().copied());
    }

    #[test]
    fn sums_and_extremes_are_exact_and_parts_add_up() {
        let mut first = histogram(&[10, 3_000_000]);
        first.add(&histogram(&[77, 5]));
        assert_eq!(first, histogram(&[10, 3_000_000, 77, 5]));
        assert_eq!((first.count, first.sum_ns, first.max_ns), (4, 3_000_092, 3_000_000));
        assert_eq!((first.mean_ns(), histogram(&[]).mean_ns()), (Some(750_023), None));
        assert_eq!(histogram(&[]).quantile_ns(0.5), None);
        assert_ne!(first, histogram(&[10, 3_000_000, 77]), "the control");
    }

    #[test]
    fn what_a_sample_says_of_all_is_within_its_bounds_in_95_of_100_samples() {
        let mut random = percid_sim::random::Random::new(95);
        let (mut medians, mut means, samples) = (0, 0, 400);
        for _ in 0..samples {
            let mut sample = Histogram::default();
            // Half of the times are below 100 us and half above, with a mean of 150 us.
            (0..200).for_each(|_| {
                let us = random.below(100);
                sample.note(1000 * if random.below(2) == 0 { us } else { 100 + 2 * us });
            });
            let within = |between: Option<(u64, u64)>, true_us: f64| {
                let (low, high) = between.expect("enough");
                u64::from((low as f64) <= true_us * 1e3 && true_us * 1e3 <= high as f64)
            };
            medians += within(sample.quantile_between_ns(0.5), 100.0);
            means += within(sample.mean_between_ns(), (49.5 + 199.0) / 2.0);
        }
        // The seed is fixed. Medians are more often within, since their bounds are those of classes.
        assert!(medians > samples * 93 / 100, "{medians} of {samples}");
        assert!((samples * 92 / 100..samples).contains(&means), "{means} of {samples}");
    }

    #[test]
    fn a_handful_says_nothing_of_all() {
        let mut few = Histogram::default();
        (0..29).for_each(|us| few.note(1000 * us));
        assert_eq!((few.mean_between_ns(), few.quantile_between_ns(0.99)), (None, None));
        (29..1000).for_each(|us| few.note(1000 * us));
        assert!(few.mean_between_ns().is_some() && few.quantile_between_ns(0.99).is_some());
    }

    #[test]
    fn bins_are_powers_of_two_microseconds() {
        let bins = histogram(&[999, 1000, 1999, 2000, 9000]).bins();
        let expected = [(1000, 1), (2000, 2), (4000, 1), (8000, 0), (16000, 1)];
        assert_eq!(bins, expected.map(|(below_ns, count)| Bin { below_ns, count }));
        assert_eq!(histogram(&[]).bins(), []);
    }
}
