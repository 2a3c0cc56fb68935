//! Summary of the errors of values that are compared to published ones.

/// Returns a sentence with the number of values, their mean absolute error, the worst error and its
/// place. Errors are in percent.
pub(crate) fn sentence(what: &str, errors: impl Iterator<Item = (String, f64)>) -> String {
    let errors: Vec<(String, f64)> = errors.filter(|(_, error)| error.is_finite()).collect();
    let worst = errors.iter().max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()));
    let Some((place, worst)) = worst else { return format!("0 published {what} can be compared.") };
    let mean = errors.iter().map(|(_, error)| error.abs()).sum::<f64>() / errors.len() as f64;
    format!(
        "The mean error of {} published {what} is {mean:.1} %, the worst {worst:+.1} %, at {place}.",
        errors.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_named_with_its_sign() {
        let errors = [("a", 1.0), ("b", -4.0), ("c", f64::NAN)];
        let errors = errors.map(|(place, error)| (place.to_owned(), error));
        assert_eq!(
            sentence("cells", errors.into_iter()),
            "The mean error of 2 published cells is 2.5 %, the worst -4.0 %, at b."
        );
        assert_eq!(sentence("cells", [].into_iter()), "0 published cells can be compared.");
    }
}
