//! What a series records in: a file for each kind.

mod gauge;
mod histogram;
mod sum;

use crate::data::{Data, Point};

pub(crate) use gauge::LastValue;
pub(crate) use histogram::{DEFAULT_BOUNDS, Distributed, Shape};
pub(crate) use sum::{FloatSum, IntegerSum};

pub(crate) trait Cell: Send + Sync + 'static {
    type Value;

    /// What it has; `None`, if nothing was recorded and that is no value.
    fn read(&self) -> Option<Self::Value>;

    fn data(points: Vec<Point<Self::Value>>) -> Data;
}

/// A cell that records values of this type.
pub(crate) trait Record<T>: Cell {
    fn record(&self, value: T);
}
