//! The values of `--set`: a name, and values or ranges of values.

/// The value of one `--set`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

/// Maximum number of values of one name: more would take days to simulate.
const MOST_VALUES: usize = 10_000;

/// Reads `NAME=VALUES`.
///
/// # Errors
///
/// Returns a description of the expected text.
pub(super) fn setting(text: &str) -> Result<Setting, String> {
    let expected = || "expected a parameter, = and numbers, such as threads=8,16".to_owned();
    let (name, values) = text.split_once('=').ok_or_else(expected)?;
    let name = name.trim().to_owned();
    if name.is_empty() {
        return Err(expected());
    }
    let mut all = Vec::new();
    for item in values.split(',') {
        let item = item.trim();
        match (number(item), item.split_once(".."), whole_range(item)) {
            (Some(value), _, _) => all.push(value),
            (_, Some((first, last)), _) => continued(&mut all, item, first, last)?,
            (_, _, Some((first, last))) => whole_numbers(&mut all, item, first, last)?,
            _ => return Err(expected()),
        }
    }
    if all.len() > MOST_VALUES {
        return Err(format!("expected at most {MOST_VALUES} values"));
    }
    Ok(Setting { name, values: all })
}

/// Adds values of a possibly infinite sequence: one more than the maximum suffices.
fn extend(all: &mut Vec<f64>, values: impl Iterator<Item = f64>) {
    let room = (MOST_VALUES + 1).saturating_sub(all.len());
    all.extend(values.take(room));
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses the ends of `1-8`. A leading minus sign belongs to the first number.
fn whole_range(item: &str) -> Option<(f64, f64)> {
    let at = item.char_indices().skip(1).find(|(_, c)| *c == '-')?.0;
    Some((number(&item[..at])?, number(&item[at + 1..])?))
}

fn whole_numbers(all: &mut Vec<f64>, item: &str, first: f64, last: f64) -> Result<(), String> {
    // Below this bound, adding one yields a different number.
    let is_whole = |end: f64| end.fract() == 0.0 && end.abs() < 1e15;
    if !(is_whole(first) && is_whole(last) && first < last) {
        return Err(format!(
            "{item}: expected whole numbers, the smaller one first, such as 1-8; other steps are \
             written as 0.1,0.2..0.8"
        ));
    }
    let values = (0..).map(|nth| first + f64::from(nth));
    extend(all, values.take_while(|value| *value <= last));
    Ok(())
}

/// The rule by which a sequence continues.
#[derive(Clone, Copy)]
enum Law {
    Step(f64),
    Factor(f64),
}

/// Adds the values of `4..64`: it continues the values before it and its first one, by the same
/// step, or otherwise by the same factor.
fn continued(all: &mut Vec<f64>, item: &str, first: &str, last: &str) -> Result<(), String> {
    let expected = format!("{item}: expected numbers on both sides of .., such as 1,2,4..64");
    let (Some(first), Some(last)) = (number(first), number(last)) else { return Err(expected) };
    let law = match all[..] {
        [] => {
            return Err(format!(
                "{item}: expected a value before it that says the step, such as 1,2..8 or \
                 1,2,4..64; by ones is 1-8"
            ));
        }
        [before] => Some(Law::Step(first - before)),
        [.., two_before, before] => law(two_before, before, first),
    };
    let Some(law) = law else {
        return Err(format!(
            "{item}: expected the three values up to its first one to have the same step (1,2,3..8) \
             or the same factor (1,2,4..64)"
        ));
    };
    let rises = match law {
        Law::Step(step) => step > 0.0,
        Law::Factor(factor) => (factor > 1.0) == (first > 0.0),
    };
    let is_last_ahead = if rises { last > first } else { last < first };
    if !is_last_ahead || law.stands_still() {
        return Err(format!("{item}: expected an end that the values before it lead to"));
    }
    let is_past = |value: f64| if rises { value > last } else { value < last };
    extend(all, (0..).map(|nth| law.value(first, nth)).take_while(|value| !is_past(*value)));
    Ok(())
}

impl Law {
    fn stands_still(self) -> bool {
        match self {
            Law::Step(step) => step == 0.0,
            // A factor below 0 would alternate the sign.
            Law::Factor(factor) => factor == 1.0 || factor <= 0.0,
        }
    }

    /// Returns the nth value. Steps are not added up, so that 0.1,0.2..0.5 ends with 0.5.
    fn value(self, first: f64, nth: i32) -> f64 {
        let exact = match self {
            Law::Step(step) => first + step * f64::from(nth),
            Law::Factor(factor) => first * factor.powi(nth),
        };
        if exact.fract() == 0.0 {
            return exact;
        }
        // The digits after the twelfth are rounding errors.
        format!("{exact:.11e}").parse().unwrap_or(exact)
    }
}

fn law(two_before: f64, before: f64, first: f64) -> Option<Law> {
    let is_close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    if is_close(before - two_before, first - before) {
        return Some(Law::Step(first - before));
    }
    let factors = [before / two_before, first / before];
    let are_numbers = factors.iter().all(|factor| factor.is_finite());
    (are_numbers && is_close(factors[0], factors[1])).then_some(Law::Factor(factors[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<f64> {
        setting(&format!("n={text}")).unwrap_or_else(|fault| panic!("{text}: {fault}")).values
    }

    fn fault(text: &str) -> String {
        setting(&format!("n={text}")).expect_err(text)
    }

    #[test]
    fn numbers_are_values() {
        assert_eq!(setting(" threads = 8, 16 ").map(|set| set.name), Ok("threads".to_owned()));
        assert_eq!(values("8, 16"), [8.0, 16.0]);
        assert_eq!(values("-5,1e-3,0.5,2e3"), [-5.0, 0.001, 0.5, 2000.0]);
    }

    #[test]
    fn a_range_goes_up_by_one() {
        assert_eq!(values("1-4"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values("-2-1,8"), [-2.0, -1.0, 0.0, 1.0, 8.0]);
        assert_eq!(values("1-2,5-6"), [1.0, 2.0, 5.0, 6.0]);
        for wrong in ["4-1", "3-3", "0.5-3", "1-1e16", "1-inf"] {
            assert!(setting(&format!("n={wrong}")).is_err(), "{wrong}");
        }
        assert!(fault("4-1").starts_with("4-1: expected whole numbers, the smaller one first"));
    }

    #[test]
    fn what_goes_on_goes_on_as_it_began() {
        assert_eq!(values("1,2,4..64"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(values("1,2..5"), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(values("1,2,3..5"), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(values("0,10..45"), [0.0, 10.0, 20.0, 30.0, 40.0], "not beyond the end");
        assert_eq!(values("1,2,4..60,100"), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 100.0]);
        assert_eq!(values("8,6..1"), [8.0, 6.0, 4.0, 2.0]);
        assert_eq!(values("8,4,2..0.25"), [8.0, 4.0, 2.0, 1.0, 0.5, 0.25]);
        assert_eq!(values("0.1,0.2..0.5"), [0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(values("-4,-2,-1..-0.5"), [-4.0, -2.0, -1.0, -0.5]);
        assert_eq!(values("0.1,0.3,0.9..9"), [0.1, 0.3, 0.9, 2.7, 8.1]);
    }

    #[test]
    fn what_cannot_go_on_is_refused_with_what_was_expected() {
        for (wrong, expected) in [
            ("4..64", "expected a value before it that says the step"),
            ("1,3,4..64", "same step (1,2,3..8) or the same factor"),
            ("0,0,4..64", "same step"),
            ("1,2..1", "expected an end that the values before it lead to"),
            ("1,2..2", "expected an end that the values before it lead to"),
            ("2,2..5", "expected an end"),
            ("1,-2,4..64", "expected an end"),
            ("8,4,2..16", "expected an end"),
            ("1,2..x", "expected numbers on both sides of .."),
            ("1,..8", "expected numbers on both sides"),
            ("1,2..4..8", "expected numbers on both sides"),
            ("1,2..inf", "expected numbers on both sides"),
            ("1,2..1e9", "at most 10000 values"),
            ("64,32,16..0", "at most 10000 values"),
            ("1-1000000", "at most 10000 values"),
            ("", "threads=8,16"),
            ("1,,2", "threads=8,16"),
            ("many", "threads=8,16"),
            ("a-b", "threads=8,16"),
        ] {
            let said = fault(wrong);
            assert!(said.contains(expected), "{wrong}: {said}");
        }
        assert!(setting("=8").is_err() && setting("n").is_err());
    }
}
