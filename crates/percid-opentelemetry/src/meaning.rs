//! The meaning of an instrument's numbers.

use crate::data::{Data, Number, Point};

pub(crate) trait Meaning: Send + Sync + 'static {
    /// `true` if numbers of several series are combined by addition. Otherwise the last one is
    /// used.
    const ADDS_UP: bool;

    /// Returns `true` if such a number may be reported.
    fn is_possible(number: f64) -> bool;

    fn data(points: Vec<Point<Number>>) -> Data;
}

/// A sum that never falls.
pub(crate) struct Counted;

/// A sum.
pub(crate) struct Balance;

/// A value that is not a sum.
pub(crate) struct Level;

impl Meaning for Counted {
    const ADDS_UP: bool = true;

    #[inline(always)]
    fn is_possible(number: f64) -> bool {
        // #[gamma::skip(range, reason = "infinity and one is infinity")]
        (0.0..f64::INFINITY).contains(&number)
    }

    fn data(points: Vec<Point<Number>>) -> Data {
        Data::Sum { is_monotonic: true, points }
    }
}

impl Meaning for Balance {
    const ADDS_UP: bool = true;

    #[inline(always)]
    fn is_possible(number: f64) -> bool {
        number.is_finite()
    }

    fn data(points: Vec<Point<Number>>) -> Data {
        Data::Sum { is_monotonic: false, points }
    }
}

impl Meaning for Level {
    const ADDS_UP: bool = false;

    fn is_possible(_: f64) -> bool {
        true
    }

    fn data(points: Vec<Point<Number>>) -> Data {
        Data::Gauge { points }
    }
}
