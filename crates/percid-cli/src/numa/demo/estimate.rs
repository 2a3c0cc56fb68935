//! Estimate of a ratio from a few pairs, with a confidence interval.

use serde::Serialize;

use super::student::standard_errors_of_95_percent;

/// The confidence of all intervals.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Name of the method in the JSON document.
pub(super) const METHOD: &str = "student_t_on_logarithms";

/// A ratio, and the interval that covers the true one in 95 of 100 demonstrations.
///
/// Ratios multiply, so their logarithms are assumed to be normally distributed. `ratio` is the
/// geometric mean, and the interval is Student's interval of the logarithms. The result does not
/// depend on which run of a pair is the divisor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Estimate {
    pub(super) pairs: usize,
    pub(super) ratio: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Estimate {
    /// Computes the estimate from positive, finite ratios; `None` for fewer than two, whose error
    /// is unknown.
    pub(super) fn from_ratios(ratios: &[f64]) -> Option<Estimate> {
        let width = standard_errors_of_95_percent(ratios.len().checked_sub(1)?)?;
        let count = ratios.len() as f64;
        let logarithms = || ratios.iter().map(|ratio| ratio.ln());
        let mean = logarithms().sum::<f64>() / count;
        let squares: f64 = logarithms().map(|logarithm| (logarithm - mean).powi(2)).sum();
        let half = width * (squares / (count - 1.0) / count).sqrt();
        Some(Estimate {
            pairs: ratios.len(),
            ratio: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-3
    }

    #[test]
    fn one_pair_has_no_error_bound() {
        assert_eq!(Estimate::from_ratios(&[]), None);
        assert_eq!(Estimate::from_ratios(&[2.3]), None);
        assert!(Estimate::from_ratios(&[2.3, 2.4]).is_some());
    }

    /// Logarithms to the base of 2 are 0, 1, 1, 2: mean 1, standard deviation sqrt(2/3), standard
    /// error sqrt(1/6), and 3.182 of these to either side.
    #[test]
    fn an_interval_calculated_by_hand() {
        let of = Estimate::from_ratios(&[1.0, 2.0, 2.0, 4.0]).expect("four pairs");
        let half = 3.182 * (1.0f64 / 6.0).sqrt();
        assert_eq!(of.pairs, 4);
        assert!(close(of.ratio, 2.0), "{of:?}");
        assert!(close(of.low, 2.0 * (-half).exp2()), "{of:?}");
        assert!(close(of.high, 2.0 * half.exp2()), "{of:?}");
    }

    #[test]
    fn it_makes_no_difference_which_run_is_divided_by_the_other() {
        let ratios = [1.3, 0.9, 1.1, 1.25];
        let of = Estimate::from_ratios(&ratios).expect("four pairs");
        let inverse = Estimate::from_ratios(&ratios.map(f64::recip)).expect("four pairs");
        assert!(close(of.ratio * inverse.ratio, 1.0));
        assert!(close(of.low * inverse.high, 1.0) && close(of.high * inverse.low, 1.0));
    }

    /// A generator of pairs of runs whose throughputs vary by chance.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            // Knuth's multiplier; the high bits are good enough here.
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Returns the ratios of six pairs: the true one, times noise of this deviation.
        fn pairs(&mut self, truth: f64, deviation: f64) -> [f64; 6] {
            [(); 6].map(|()| {
                let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
                truth * (deviation * normal).exp()
            })
        }
    }

    const TRIALS: usize = 4000;

    /// Returns the percentage of trials in which the predicate is true.
    fn percent_of_trials(mut is_so: impl FnMut(&mut Noise) -> bool) -> f64 {
        let mut noise = Noise(1);
        let so = (0..TRIALS).filter(|_| is_so(&mut noise)).count();
        100.0 * so as f64 / TRIALS as f64
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        for (truth, deviation) in [(1.0, 0.01), (1.0, 0.3), (1.8, 0.05)] {
            let covered = percent_of_trials(|noise| {
                let of = Estimate::from_ratios(&noise.pairs(truth, deviation)).expect("six pairs");
                of.low <= truth && truth <= of.high
            });
            assert!((93.5..96.5).contains(&covered), "{truth}, {deviation}: {covered} %");
        }
    }

    /// The purpose of the interval: a value without it mistakes noise for a difference.
    #[test]
    fn equal_runs_differ_in_a_single_pair_but_not_beyond_the_interval() {
        let beyond_a_tenth = |ratio: f64| !(0.9..=1.1).contains(&ratio);
        let one_pair = percent_of_trials(|noise| beyond_a_tenth(noise.pairs(1.0, 0.2)[0]));
        let six = percent_of_trials(|noise| {
            let of = Estimate::from_ratios(&noise.pairs(1.0, 0.2)).expect("six pairs");
            of.low > 1.0 || of.high < 1.0
        });
        assert!(one_pair > 50.0, "{one_pair} %");
        assert!(six < 6.5, "{six} %");
    }

    #[test]
    fn a_real_difference_is_found() {
        let found = percent_of_trials(|noise| {
            Estimate::from_ratios(&noise.pairs(1.3, 0.1)).is_some_and(|of| of.low > 1.0)
        });
        assert!(found > 99.0, "{found} %");
    }
}
