//! Precision of means.

/// Returns `true` if half of the 95 % interval of the values' mean is at most this share of the
/// mean. Returns `false` for fewer than three values.
pub(crate) fn is_known(values: &[f64], share: f64) -> bool {
    half_interval(values).is_some_and(|(mean, half)| half <= share * mean.abs())
}

/// Returns the mean, and half of its 95 % interval; `None` for fewer than three values.
pub(crate) fn half_interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 3 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    let deviation = (squares / (count - 1.0)).sqrt();
    Some((mean, student(count - 1.0) * deviation / count.sqrt()))
}

/// Returns the 97.5 % quantile of Student's distribution, by its expansion for many degrees of
/// freedom (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5). From two degrees of
/// freedom on, it is less than 1 % too small.
fn student(freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let z2 = Z * Z;
    let terms = [
        Z * (z2 + 1.0) / 4.0,
        Z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0,
        Z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0,
        Z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + Z
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published quantiles, as in every table of Student's distribution.
    #[test]
    fn quantiles_are_those_of_tables() {
        let table =
            [(2.0, 4.303), (3.0, 3.182), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042), (1e6, 1.960)];
        for (freedom, published) in table {
            let error = student(freedom) / published - 1.0;
            assert!(error.abs() < 0.01, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn a_mean_is_known_when_its_interval_is_small() {
        assert!(!is_known(&[], 1.0) && !is_known(&[5.0, 5.0], 1.0));
        assert!(is_known(&[5.0, 5.0, 5.0], 0.0));
        // Mean 10, deviation 1, 4.303 / sqrt(3) = 2.48.
        let (mean, half) = half_interval(&[9.0, 10.0, 11.0]).expect("an interval");
        assert!(mean == 10.0 && (2.3..2.6).contains(&half), "{half}");
        assert!(is_known(&[9.0, 10.0, 11.0], 0.26) && !is_known(&[9.0, 10.0, 11.0], 0.2));
    }
}
