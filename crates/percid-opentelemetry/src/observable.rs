//! Observable instruments: callbacks of the program report their values at a collection.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Callback};

use crate::attribute_map::AttributeMap;
use crate::attributes;
use crate::collected::Collected;
use crate::data::{Data, Number, Point};
use crate::error::{Error, Errors};
use crate::identity::Identity;
use crate::meaning::Meaning;
use crate::numeric::Numeric;
use crate::series::{is_overflow, overflow_attributes};

pub(crate) struct Observable<T, M> {
    identity: Identity,
    limit: usize,
    has_told: AtomicBool,
    callbacks: Mutex<Vec<Arc<Callback<T>>>>,
    known: Mutex<Known>,
    meaning: PhantomData<M>,
}

/// The start time of each series of the last collection, and the time of that collection.
struct Known {
    collected: SystemTime,
    starts: AttributeMap<SystemTime>,
}

impl<T: Numeric, M: Meaning> Observable<T, M> {
    pub(crate) fn new(identity: Identity, limit: usize) -> Observable<T, M> {
        let known = Known { collected: SystemTime::now(), starts: AttributeMap::new() };
        Observable {
            identity,
            limit,
            has_told: AtomicBool::new(false),
            callbacks: Mutex::default(),
            known: Mutex::new(known),
            meaning: PhantomData,
        }
    }

    pub(crate) fn ask_also(&self, callbacks: Vec<Callback<T>>) {
        let mut all = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(callbacks.into_iter().map(Arc::new));
    }

    /// Calls the callbacks, without a lock of this instrument: they may use any instrument.
    fn ask(&self, errors: &Errors) -> Observed<T> {
        let callbacks = self.callbacks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let observer = Observer::<T, M> {
            limit: self.limit,
            observed: Mutex::new(Observed { series: AttributeMap::new(), overflow: None }),
            meaning: PhantomData,
        };
        for callback in callbacks {
            if catch_unwind(AssertUnwindSafe(|| callback(&observer))).is_err() {
                errors.tell(&Error::Callback(self.identity.name.to_string()));
            }
        }
        observer.observed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Numeric, M: Meaning> Collected for Observable<T, M> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn read(&self, time: SystemTime, errors: &Errors) -> Data {
        let observed = self.ask(errors);
        if observed.overflow.is_some() && !self.has_told.swap(true, Relaxed) {
            let name = self.identity.name.to_string();
            errors.tell(&Error::Overflow { name, limit: self.limit });
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        M::data(known.points(observed, time))
    }
}

impl Known {
    /// Returns the series with their start times. A series starts at the collection before the one
    /// that observed it first.
    fn points<T: Numeric>(
        &mut self,
        observed: Observed<T>,
        time: SystemTime,
    ) -> Vec<Point<Number>> {
        let overflow = observed.overflow.map(|value| (overflow_attributes(), value));
        let series = observed.series.iter();
        let series = series.map(|(attributes, value)| (Arc::clone(attributes), *value));
        let mut starts = AttributeMap::new();
        let point = |(attributes, value): (Arc<[KeyValue]>, T)| {
            let set: Vec<&KeyValue> = attributes.iter().collect();
            let start = *self.starts.get(&set).unwrap_or(&self.collected);
            starts.add(Arc::clone(&attributes), start);
            Point { attributes, start: start.min(time), value: value.number() }
        };
        let points = series.chain(overflow).map(point).collect();
        *self = Known { collected: time, starts };
        points
    }
}

/// The instrument to which the callbacks of one instrument report.
struct Observer<T, M> {
    limit: usize,
    observed: Mutex<Observed<T>>,
    meaning: PhantomData<M>,
}

struct Observed<T> {
    series: AttributeMap<T>,
    overflow: Option<T>,
}

impl<T: Numeric, M: Meaning> AsyncInstrument<T> for Observer<T, M> {
    fn observe(&self, measurement: T, attributes: &[KeyValue]) {
        if !M::is_possible(measurement.float()) {
            return;
        }
        let set = attributes::canonical(attributes);
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = observed.series.get_mut(&set) {
            *value = measurement;
        } else if !is_overflow(&set) && observed.series.len() < self.limit {
            let attributes = set.into_iter().cloned().collect();
            observed.series.add(attributes, measurement);
        } else {
            let before = observed.overflow.filter(|_| M::ADDS_UP);
            observed.overflow = Some(before.map_or(measurement, |sum| sum.plus(measurement)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::meaning::{Counted, Level};

    fn observed<T: Numeric, M: Meaning>(limit: usize, all: &[(T, &[KeyValue])]) -> Observed<T> {
        let observed = Mutex::new(Observed { series: AttributeMap::new(), overflow: None });
        let observer = Observer::<T, M> { limit, observed, meaning: PhantomData };
        all.iter().for_each(|(value, attributes)| observer.observe(*value, attributes));
        observer.observed.into_inner().expect("no panic")
    }

    #[test]
    fn what_is_beyond_the_limit_adds_up_or_the_last_one_counts() {
        let [a, b, c] = ["a", "b", "c"].map(|key| [KeyValue::new(key, 1)]);
        let overflow = overflow_attributes();
        let all: [(u64, &[KeyValue]); 5] = [(1, &overflow), (2, &a), (3, &b), (4, &c), (5, &a)];
        for (limit, series, sum, last) in
            [(9, 3, 1, 1), (2, 2, 1 + 4, 4), (1, 1, 1 + 3 + 4, 4), (0, 0, 15, 5)]
        {
            let counted = observed::<u64, Counted>(limit, &all);
            assert_eq!((counted.series.len(), counted.overflow), (series, Some(sum)), "{limit}");
            let level = observed::<u64, Level>(limit, &all);
            assert_eq!((level.series.len(), level.overflow), (series, Some(last)), "{limit}");
            assert_eq!(level.series.get(&[&a[0]]).copied(), (limit > 0).then_some(5));
        }
    }

    #[test]
    fn numbers_of_every_type_add_up() {
        let integers: [(i64, &[KeyValue]); 2] = [(2, &[]), (3, &[])];
        assert_eq!(observed::<i64, Counted>(0, &integers).overflow, Some(5));
        let floats: [(f64, &[KeyValue]); 2] = [(0.25, &[]), (3.25, &[])];
        assert_eq!(observed::<f64, Counted>(0, &floats).overflow, Some(3.5));
    }

    #[test]
    fn no_series_begins_behind_the_collection() {
        let collected = SystemTime::now();
        let mut known = Known { collected, starts: AttributeMap::new() };
        let series = || observed::<u64, Counted>(1, &[(1, &[])]);
        let earlier = collected - Duration::from_secs(1);
        assert_eq!(known.points(series(), earlier)[0].start, earlier);
        // Its start time stays the same in later collections.
        let later = collected + Duration::from_secs(1);
        assert_eq!(known.points(series(), later)[0].start, collected);
        assert_eq!(known.points(series(), later)[0].start, collected);
    }
}
