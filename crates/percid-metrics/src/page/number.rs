//! Numbers in the syntax of the formats.

use std::fmt;

/// Formats a float: with an exponent if it would be long otherwise. NaN and infinities have the
/// formats' names.
pub(crate) fn number(value: f64) -> impl fmt::Display {
    Number(value)
}

struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Number(value) = *self;
        // #[gamma::skip(range, reason = "1e16 + 1.0 is 1e16")]
        match value {
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            _ if value == 0.0 || (1e-5..1e16).contains(&value.abs()) => write!(f, "{value}"),
            _ => write!(f, "{value:e}"),
        }
    }
}

/// Formats a limit or a quantile as OpenMetrics requires (*Canonical Numbers*): like C's `%g` with
/// as many digits as needed. `.0` is appended if there is neither point nor exponent.
pub(crate) fn canonical(value: f64) -> impl fmt::Display {
    Canonical(value)
}

struct Canonical(f64);

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Canonical(value) = *self;
        if !value.is_finite() {
            write!(f, "{}", Number(value))
        } else if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) {
            let text = format!("{value:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or_default();
            let (sign, exponent) =
                exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
            write!(f, "{digits}e{sign}{exponent:0>2}")
        } else if value.fract() == 0.0 {
            write!(f, "{value:.1}")
        } else {
            write!(f, "{value}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_the_specification_shows() {
        let texts = "0.0 0.001 0.002 0.01 0.1 0.9 0.95 0.99 0.999 1.0 1.7 10.0 1e-10 1e-09 1e-05 0.0001 \
                     100000.0 1e+06 1e+10 1e+23 1.1e+23 1.5e-05 1.234567e+06 -2.5 -1e+06 +Inf -Inf";
        for text in texts.split_ascii_whitespace() {
            let value: f64 = text.parse().expect("a number");
            assert_eq!(canonical(value).to_string(), text);
        }
    }

    #[test]
    fn numbers_are_read_back_as_they_were() {
        for value in [0.0, -0.0, 1.0, 0.1, -2.5, 1e300, 5e-324, f64::MAX, 123_456_789.0, 1e16] {
            let text = number(value).to_string();
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{text}");
            assert!(text.len() < 25, "{text}");
        }
        let texts = "NaN +Inf -Inf 0 -0 0.00001 9.9e-6 -9.9e-6 123456789 9999999999999998 1e16";
        for text in texts.split_ascii_whitespace() {
            let value: f64 = text.parse().expect("a number");
            assert_eq!(number(value).to_string(), text);
        }
    }
}
