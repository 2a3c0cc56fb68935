//! The types of instruments' numbers.

use crate::data::Number;

pub(crate) trait Numeric: Copy + Send + Sync + 'static {
    fn number(self) -> Number;
    fn plus(self, other: Self) -> Self;
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;

    /// Returns the nearest float.
    fn float(self) -> f64;
}

impl Numeric for u64 {
    fn number(self) -> Number {
        Number::U64(self)
    }

    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }

    fn to_bits(self) -> u64 {
        self
    }

    fn from_bits(bits: u64) -> u64 {
        bits
    }

    // #[gamma::skip(fn_value.one, fn_value.zero, expr.increment, reason = "all integers from 0 on are possible")]
    fn float(self) -> f64 {
        self as f64
    }
}

impl Numeric for i64 {
    fn number(self) -> Number {
        Number::I64(self)
    }

    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }

    fn to_bits(self) -> u64 {
        self as u64
    }

    fn from_bits(bits: u64) -> i64 {
        bits as i64
    }

    // #[gamma::skip(fn_value, expr, reason = "all integers are possible where these types are used")]
    fn float(self) -> f64 {
        self as f64
    }
}

impl Numeric for f64 {
    fn number(self) -> Number {
        Number::F64(self)
    }

    fn plus(self, other: f64) -> f64 {
        self + other
    }

    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }

    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    fn float(self) -> f64 {
        self
    }
}
