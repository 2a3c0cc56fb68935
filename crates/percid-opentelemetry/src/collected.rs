//! The interface of instruments for collections.

use std::any::Any;
use std::time::SystemTime;

use crate::data::{Data, Metric};
use crate::error::Errors;
use crate::identity::Identity;

pub(crate) trait Collected: Any + Send + Sync {
    fn identity(&self) -> &Identity;

    /// Returns all series.
    fn read(&self, time: SystemTime, errors: &Errors) -> Data;
}

/// Returns an instrument's metric, or `None` if it has no series.
pub(crate) fn metric(
    instrument: &dyn Collected,
    time: SystemTime,
    errors: &Errors,
) -> Option<Metric> {
    let data = instrument.read(time, errors);
    let is_empty = match &data {
        Data::Sum { points, .. } | Data::Gauge { points } => points.is_empty(),
        Data::Histogram { points } => points.is_empty(),
    };
    let Identity { name, description, unit } = instrument.identity().clone();
    (!is_empty).then_some(Metric { name, description, unit, data })
}
