//! Summary of values that are compared: the smallest, the largest, and their names.

use super::numbers::{figure, plain};

/// Returns the sentence; `None` if there is no value. `unit` is the text after a number, such as `
/// ns`.
pub(crate) fn sentence(
    what: &str,
    unit: &str,
    figures: impl IntoIterator<Item = (String, f64)>,
) -> Option<String> {
    let figures: Vec<(String, f64)> = figures.into_iter().collect();
    let by = |(_, one): &&(String, f64), (_, other): &&(String, f64)| one.total_cmp(other);
    let (least, most) = figures.iter().min_by(by).zip(figures.iter().max_by(by))?;
    let ((first, least), (last, most)) = (least, most);
    let are_counts = figures.iter().all(|(_, value)| value.fract() == 0.0);
    let [from, to] = [*least, *most].map(if are_counts { plain } else { figure });
    if from == to {
        let whose = if figures.len() == 1 { first } else { "all of them" };
        return Some(format!("{what} is {from}{unit} with {whose}."));
    }
    let times = if *least > 0.0 && most / least >= 1.05 {
        format!(", {} times as much", ratio(most / least))
    } else {
        String::new()
    };
    Some(format!("{what} is {from}{unit} with {first} and {to}{unit} with {last}{times}."))
}

fn ratio(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_named() {
        let of = |figures: &[(&str, f64)]| {
            let figures = figures.iter().map(|&(name, value)| (name.to_owned(), value));
            sentence("Time", " ns", figures).unwrap_or_default()
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[("a", 2.5)]), "Time is 2.50 ns with a.");
        assert_eq!(of(&[("a", 2.0), ("b", 2.0)]), "Time is 2 ns with all of them.");
        assert_eq!(
            of(&[("a", 20.0), ("b", 5.5), ("c", 7.0)]),
            "Time is 5.50 ns with b and 20.0 ns with a, 3.6 times as much."
        );
        assert_eq!(of(&[("a", 0.0), ("b", 500.0)]), "Time is 0 ns with a and 500 ns with b.");
        assert_eq!(of(&[("a", 100.0), ("b", 101.0)]), "Time is 100 ns with a and 101 ns with b.");
    }
}
