//! Student's t distribution, for a 95 % confidence interval.

/// The 0.975 quantile for 1 to 30 degrees of freedom, to three decimals: *NIST/SEMATECH e-Handbook
/// of Statistical Methods*, 1.3.6.7.2, "Critical Values of the Student's t Distribution".
const FIRST_QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The same for some larger degrees of freedom, from the same table.
const FURTHER: [(usize, f64); 4] = [(40, 2.021), (60, 2.000), (80, 1.990), (100, 1.984)];

/// Returns the number of standard errors by which a 95 % confidence interval extends to either side
/// of a mean. Between tabulated degrees it is the value of the next lower ones, so that the
/// interval is too wide rather than too narrow. `None` without a degree of freedom: a single value
/// has no error bound.
pub(super) fn standard_errors_of_95_percent(degrees: usize) -> Option<f64> {
    let further = FURTHER.iter().rev().find(|(from, _)| *from <= degrees);
    let first = || FIRST_QUANTILES.get(degrees.min(FIRST_QUANTILES.len()).checked_sub(1)?).copied();
    further.map(|(_, quantile)| *quantile).or_else(first)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    /// Returns the share of the distribution below `t`, from its definition: with t = sqrt(n) tan x
    /// the density is proportional to cos^(n-1) x, which Simpson's rule integrates.
    fn share_below(t: f64, degrees: usize) -> f64 {
        let area = |end: f64| {
            const STEPS: usize = 4000;
            let density = |step: usize| {
                let x = end * step as f64 / STEPS as f64;
                x.cos().powi(degrees as i32 - 1)
            };
            let weight = |step: usize| match step {
                0 | STEPS => 1.0,
                _ if step % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let sum: f64 = (0..=STEPS).map(|step| weight(step) * density(step)).sum();
            sum * end / STEPS as f64 / 3.0
        };
        0.5 + area((t / (degrees as f64).sqrt()).atan()) / area(FRAC_PI_2) / 2.0
    }

    #[test]
    fn the_table_is_that_of_the_distribution() {
        let first =
            FIRST_QUANTILES.iter().copied().zip(1..).map(|(quantile, degrees)| (degrees, quantile));
        for (degrees, quantile) in first.chain(FURTHER) {
            let share = share_below(quantile, degrees);
            assert!((share - 0.975).abs() < 4e-5, "{degrees}: {share}");
            // A wrong digit in the second decimal would be detected.
            for wrong in [quantile - 0.01, quantile + 0.01] {
                let share = share_below(wrong, degrees);
                assert!(degrees == 1 || (share - 0.975).abs() > 4e-5, "{degrees}: {share}");
            }
        }
    }

    #[test]
    fn between_the_tabulated_degrees_the_interval_is_rather_too_wide() {
        assert_eq!(standard_errors_of_95_percent(0), None);
        for (degrees, expected) in
            [(1, 12.706), (30, 2.042), (31, 2.042), (39, 2.042), (40, 2.021), (99, 1.990)]
        {
            assert_eq!(standard_errors_of_95_percent(degrees), Some(expected), "{degrees}");
        }
        assert_eq!(standard_errors_of_95_percent(1_000_000), Some(1.984));
    }
}
