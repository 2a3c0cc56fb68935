//! Leave-one-out for tables whose cells are few and whose simulation is the fit's function: the
//! numbers are fitted again without each published value, and must predict it.

use rayon::prelude::*;
use serde::Serialize;

use super::minimise::minimise_roughly;
use super::prediction::Published;
use crate::run_control::RunControl;

/// A table that can be fitted again.
pub trait Refitted: Sync {
    /// Returns the numbers that are fitted again, with their present values.
    fn numbers(&self) -> Vec<(&'static str, f64)>;

    /// Returns the numbers multiplied by these factors, as [`Refitted::simulate`] uses them.
    fn multiplied(&self, factors: &[f64]) -> Vec<f64> {
        self.numbers().into_iter().zip(factors).map(|((_, value), factor)| value * factor).collect()
    }

    /// Returns the published values that are fitted and predicted, with their names.
    fn published(&self) -> Vec<(String, Published)>;

    /// Simulates the values with the numbers multiplied by these factors, in the order of
    /// [`Refitted::published`]. Returns `None` if it was stopped, or if the numbers are not allowed.
    fn simulate(&self, factors: &[f64], seed: u64, progress: &RunControl) -> Option<Vec<f64>>;
}

/// The predictions of all values from all others.
#[derive(Debug, Clone, Serialize)]
pub struct LeaveOneOut {
    /// Number of fitted numbers, with those that keep their values here.
    pub fitted: usize,
    /// Names of the numbers that are fitted again.
    pub refitted: Vec<&'static str>,
    /// Mean of the absolute errors, as a share of the published values.
    pub mean_error: f64,
    /// Largest absolute error, as a share.
    pub worst_error: f64,
    /// The predictions.
    pub left_out: Vec<LeftOut>,
}

/// A value that was left out of a fit.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// Name of the value.
    pub name: String,
    /// The prediction.
    pub model: f64,
    /// The published value.
    pub published: Published,
    /// Difference of the prediction from the published value, as a share of it.
    pub error: f64,
    /// The values of the refitted numbers.
    pub numbers: Vec<f64>,
}

/// The factors from which fits start, in turn. They are away from the present numbers, which know
/// the value that is left out.
const START: [f64; 2] = [1.3, 0.75];

/// Initial step of the search, which uses logarithms.
const EDGE: f64 = 0.3;

/// Steps of the search for each number.
const STEPS_PER_NUMBER: usize = 14;

/// Largest distance of a value from the published one that counts, as a logarithm.
const FAR: f64 = 3.0;

/// Distance up to which squares count, and beyond which distances count linearly.
const SMALL: f64 = 0.1;

/// Offset of the seeds of predictions from those of fits.
const SEEDS_OF_FITS: u64 = 1000;

/// Fits the table without each of its values. `fitted` is the number of all fitted numbers. Uses all
/// CPUs. Returns `None` if it was stopped.
pub fn leave_one_out(
    table: &impl Refitted,
    fitted: usize,
    seed: u64,
    progress: &RunControl,
) -> Option<LeaveOneOut> {
    let published = table.published();
    let left_out = (0..published.len()).into_par_iter().map(|at| {
        let factors = fit(table, &published, at, seed, progress);
        let model = table.simulate(&factors, seed.wrapping_add(SEEDS_OF_FITS), progress)?[at];
        let (name, published) = published[at].clone();
        let numbers = table.multiplied(&factors);
        let error = published.error(model).unwrap_or(f64::INFINITY);
        Some(LeftOut { name, model, published, error, numbers })
    });
    let left_out: Option<Vec<LeftOut>> = left_out.collect();
    let left_out = left_out?;
    let errors = left_out.iter().map(|left| left.error.abs());
    Some(LeaveOneOut {
        fitted,
        refitted: table.numbers().into_iter().map(|(name, _)| name).collect(),
        mean_error: errors.clone().sum::<f64>() / left_out.len() as f64,
        worst_error: errors.fold(0.0, f64::max),
        left_out,
    })
}

/// Returns the factors that fit all values but one.
fn fit(
    table: &impl Refitted,
    published: &[(String, Published)],
    without: usize,
    seed: u64,
    progress: &RunControl,
) -> Vec<f64> {
    let factors = |logarithms: &[f64]| logarithms.iter().map(|one| libm::exp(*one)).collect();
    let misfit = |logarithms: &[f64]| {
        let factors: Vec<f64> = factors(logarithms);
        let Some(values) = table.simulate(&factors, seed, progress) else { return f64::INFINITY };
        let cells = values.iter().zip(published).enumerate().filter(|(at, _)| *at != without);
        cells.map(|(_, (value, (_, published)))| distance(*value, *published)).sum()
    };
    let start = (0..table.numbers().len()).map(|at| libm::log(START[at % START.len()]));
    let start: Vec<f64> = start.collect();
    let least = minimise_roughly(&start, EDGE, STEPS_PER_NUMBER * start.len(), misfit);
    factors(&least.at)
}

/// Returns the distance of a value from a published one: squares of small logarithms, and large ones
/// linearly. Values without a logarithm are far away.
fn distance(value: f64, published: Published) -> f64 {
    let share = 1.0 + published.error(value).unwrap_or(FAR);
    let logarithm = if share > 0.0 { libm::log(share).clamp(-FAR, FAR) } else { FAR };
    let scaled = logarithm / SMALL;
    SMALL * SMALL * (libm::sqrt(1.0 + scaled * scaled) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three values of two numbers, of which the third is `third` times what the others say.
    struct Invented {
        third: f64,
    }

    impl Refitted for Invented {
        fn numbers(&self) -> Vec<(&'static str, f64)> {
            vec![("height", 10.0), ("width", 2.0)]
        }

        fn published(&self) -> Vec<(String, Published)> {
            let values = [("height", 10.0), ("width", 2.0), ("area", 20.0 * self.third)];
            values.map(|(name, value)| (name.to_owned(), Published::Exactly(value))).to_vec()
        }

        fn simulate(&self, factors: &[f64], _: u64, _: &RunControl) -> Option<Vec<f64>> {
            let (height, width) = (10.0 * factors[0], 2.0 * factors[1]);
            Some(vec![height, width, height * width])
        }
    }

    fn found(third: f64) -> LeaveOneOut {
        leave_one_out(&Invented { third }, 3, 1, &RunControl::default()).expect("nobody stops it")
    }

    #[test]
    fn a_table_that_follows_the_model_is_predicted() {
        let found = found(1.0);
        assert!(found.worst_error < 0.02, "{found:?}");
        assert_eq!((found.fitted, found.refitted.as_slice()), (3, ["height", "width"].as_slice()));
    }

    /// Negative control: a value that contradicts the others is not.
    #[test]
    fn a_value_that_contradicts_the_others_is_predicted_wrongly() {
        let found = found(2.0);
        let area = &found.left_out[2];
        assert!(area.name == "area" && (area.error + 0.5).abs() < 0.02, "{area:?}");
        assert!((area.numbers[0] / 10.0 - 1.0).abs() < 0.02, "{area:?}");
        assert!(found.worst_error > 0.4 && found.mean_error > 0.4, "{found:?}");
    }

    #[test]
    fn distances_are_symmetric_and_within_a_range_zero() {
        let exactly = Published::Exactly(100.0);
        assert!((distance(200.0, exactly) - distance(50.0, exactly)).abs() < 1e-12);
        assert!(distance(-1.0, exactly).is_finite() && distance(0.0, exactly) > 0.2);
        assert_eq!(distance(12.0, Published::Between(10.0, 15.0)), 0.0);
    }
}
