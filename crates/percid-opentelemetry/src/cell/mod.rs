//! The cells of series, which store the values: a file for each kind.

mod gauge;
mod histogram;
mod record;
mod sum;

pub(crate) use gauge::LastValue;
pub(crate) use histogram::{DEFAULT_BOUNDS, Distributed, Shape};
pub(crate) use record::{Cell, Record};
pub(crate) use sum::{FloatSum, IntegerSum};
