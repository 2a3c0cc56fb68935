//! Numbers as the formats have them.

use std::fmt;

/// A float: with an exponent where it would be long, and the names that the formats have for what is no
/// finite number.
pub(crate) fn number(value: f64) -> impl fmt::Display {
    Number(value)
}

struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Number(value) = *self;
        let amount = value.abs();
        if value.is_nan() {
            f.write_str("NaN")
        } else if value.is_infinite() {
            f.write_str(if value > 0.0 { "+Inf" } else { "-Inf" })
        } else if amount != 0.0 && !(1e-5..1e16).contains(&amount) {
            write!(f, "{value:e}")
        } else {
            write!(f, "{value}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_back_as_they_were() {
        for value in [0.0, -0.0, 1.0, 0.1, -2.5, 1e300, 5e-324, f64::MAX, 123_456_789.0, 1e16] {
            let text = number(value).to_string();
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{text}");
            assert!(text.len() < 25, "{text}");
        }
        let texts = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(|it| number(it).to_string());
        assert_eq!(texts, ["NaN", "+Inf", "-Inf"]);
    }
}
