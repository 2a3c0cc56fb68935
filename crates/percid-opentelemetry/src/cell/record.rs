//! The interface of all cells.

use crate::data::{Data, Point};

pub(crate) trait Cell: Send + Sync + 'static {
    type Value;

    /// Returns the value, or `None` if nothing was recorded and the kind has no value then.
    fn read(&self) -> Option<Self::Value>;

    fn data(points: Vec<Point<Self::Value>>) -> Data;
}

/// A cell that records values of this type.
pub(crate) trait Record<T>: Cell {
    fn record(&self, value: T);
}
