//! Formatting of values, and tables of the numbers that a simulation uses.

use std::collections::BTreeMap;

use percid_command::table::Table;
use percid_sim::machine::Parameter;

/// Formats a number as short as possible.
pub(crate) fn plain(value: f64) -> String {
    value.to_string()
}

/// Formats the values of parameters in one line; empty if there are none.
pub(crate) fn settings(parameters: &BTreeMap<String, f64>) -> String {
    let settings: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", plain(*value))).collect();
    settings.join(" ")
}

/// Formats a value: no decimals above 100, two below 10.
pub(crate) fn figure(value: f64) -> String {
    // Avoid a sign of zero.
    let value = value + 0.0;
    match value.abs() {
        size if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats the value, or a dash if there is none.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), figure)
}

/// Formats a difference in percent, with its sign.
pub(crate) fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:+.1} %"))
}

/// Formats a share as a percentage, without the percent sign.
pub(crate) fn hundredths(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// One of the numbers that a simulation uses.
pub(crate) struct Number<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: String,
    pub(crate) origin: &'a str,
    pub(crate) fitted: bool,
}

impl<'a> From<&'a Parameter> for Number<'a> {
    fn from(parameter: &'a Parameter) -> Number<'a> {
        let Parameter { name, value, origin, fitted } = parameter;
        Number { name, value: plain(*value), origin, fitted: *fitted }
    }
}

/// Maximum number of fitted numbers that are named rather than only counted.
const MOST_NAMED: usize = 4;

/// Returns a sentence with the count of the numbers, and the names of the fitted ones.
pub(crate) fn sentence<'a>(numbers: impl IntoIterator<Item = Number<'a>>) -> String {
    let numbers: Vec<Number<'a>> = numbers.into_iter().collect();
    let fitted = numbers.iter().filter(|number| number.fitted).map(|number| number.name);
    let fitted: Vec<&str> = fitted.collect();
    match fitted.len() {
        0 => format!("{} numbers, none of them fitted.", numbers.len()),
        count if count > MOST_NAMED => {
            format!("{} numbers, {count} of them fitted.", numbers.len())
        }
        count => {
            format!("{} numbers, {count} of them fitted: {}.", numbers.len(), fitted.join(", "))
        }
    }
}

/// Returns a table of numbers with their origins.
pub(crate) fn table<'a>(numbers: impl IntoIterator<Item = Number<'a>>) -> Table {
    let mut table = Table::new(["number", "value", "where it comes from"], 3);
    for Number { name, value, origin, fitted } in numbers {
        let mark = if fitted { " (fitted)" } else { "" };
        table.row([format!("{name}{mark}"), value, origin.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_they_deserve() {
        let written = [0.0, 0.0312, 9.99, 9.996, 52.04, 99.96, 19289.4, -0.25].map(figure);
        assert_eq!(written, ["0", "0.03", "9.99", "10.0", "52.0", "100", "19289", "-0.25"]);
    }
}
