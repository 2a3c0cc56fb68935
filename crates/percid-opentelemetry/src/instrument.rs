//! Instruments that a program records with.

use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{BoundSyncInstrument, SyncInstrument};

use crate::cell::{Cell, Record};
use crate::collected::Collected;
use crate::data::Data;
use crate::error::Errors;
use crate::identity::Identity;
use crate::series::{Series, SeriesMap};

pub(crate) struct Instrument<C> {
    identity: Identity,
    series: SeriesMap<C>,
}

impl<C> Instrument<C> {
    pub(crate) fn new(identity: Identity, series: SeriesMap<C>) -> Instrument<C> {
        Instrument { identity, series }
    }
}

impl<T: Copy, C: Record<T>> SyncInstrument<T> for Instrument<C> {
    fn measure(&self, measurement: T, attributes: &[KeyValue]) {
        self.series.with(attributes, |cell| cell.record(measurement));
    }

    fn bind(&self, attributes: &[KeyValue]) -> Box<dyn BoundSyncInstrument<T> + Send + Sync> {
        Box::new(Bound { series: self.series.get(attributes) })
    }
}

/// An instrument with attributes that were looked up once.
struct Bound<C> {
    series: Arc<Series<C>>,
}

impl<T: Copy, C: Record<T>> BoundSyncInstrument<T> for Bound<C> {
    fn measure(&self, measurement: T) {
        self.series.cell.record(measurement);
    }
}

impl<C: Cell> Collected for Instrument<C> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn read(&self, time: SystemTime, _: &Errors) -> Data {
        C::data(self.series.read(time))
    }
}

/// A replacement for an invalid instrument. It ignores all values.
pub(crate) struct Ignoring;

impl<T> SyncInstrument<T> for Ignoring {
    fn measure(&self, _: T, _: &[KeyValue]) {}

    fn bind(&self, _: &[KeyValue]) -> Box<dyn BoundSyncInstrument<T> + Send + Sync> {
        Box::new(Ignoring)
    }
}

impl<T> BoundSyncInstrument<T> for Ignoring {
    fn measure(&self, _: T) {}
}
