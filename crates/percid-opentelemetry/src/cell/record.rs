//! What all cells have.

use crate::data::{Data, Point};

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
