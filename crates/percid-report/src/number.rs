//! Formatting of numbers on pages.

/// Formats a number with at most this many significant digits, and separated thousands. Whole
/// numbers keep all of their digits.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let decimals = (digits - before).clamp(0, 12) as usize;
    separated(&decimal(value, decimals))
}

/// Formats a number with at most this many decimals.
pub(crate) fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a number for an axis, which has little room.
pub(crate) fn tick(value: f64) -> String {
    let large = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")];
    match large.into_iter().find(|(least, _)| value.abs() >= *least) {
        Some((_, "k")) => format!("{}k", significant(value / 1e3, 4)),
        Some((unit, letter)) => format!("{}{letter}", significant(value / unit, 4)),
        None => significant(value, 6),
    }
}

/// Formats a percentage of a length, for coordinates.
pub(crate) fn percent(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{}%", if text == "-0" { "0" } else { text })
}

fn separated(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_right() {
        let cases = [(0.0, "0"), (1374.4, "1,374"), (26_721.0, "26,721"), (-7.312_34, "-7.312")];
        for (value, text) in cases.into_iter().chain([(0.012_345, "0.01235"), (100.0, "100")]) {
            assert_eq!(significant(value, 4), text);
        }
        assert_eq!(significant(f64::NAN, 4), "NaN");
        assert_eq!(
            [1e4, 2.5e5, 1e6, 3e9, 5000.0, 0.25].map(tick),
            ["10k", "250k", "1M", "3G", "5,000", "0.25"]
        );
        assert_eq!([12.5, 0.0, 33.333_3, -0.001].map(percent), ["12.5%", "0%", "33.33%", "0%"]);
    }
}
