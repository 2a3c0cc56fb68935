//! A meter: the instruments of one scope.

use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{
    AsyncInstrumentBuilder, Callback, Counter, Gauge, Histogram, HistogramBuilder,
    InstrumentBuilder, InstrumentProvider, ObservableCounter, ObservableGauge,
    ObservableUpDownCounter, SyncInstrument, UpDownCounter,
};
use percid_metrics::histogram::Limits;

use crate::cell::{
    Cell, DEFAULT_BOUNDS, Distributed, FloatSum, IntegerSum, LastValue, Record, Shape,
};
use crate::collected::{Collected, metric};
use crate::data::ScopeMetrics;
use crate::error::{Error, Errors};
use crate::identity::Identity;
use crate::instrument::{Ignoring, Instrument};
use crate::meaning::{Balance, Counted, Level, Meaning};
use crate::numeric::Numeric;
use crate::observable::Observable;
use crate::series::SeriesMap;

/// The options of all instruments.
pub(crate) struct Options {
    pub(crate) cardinality_limit: usize,
    /// The scale of histograms without boundaries of their own; `None` for explicit boundaries.
    pub(crate) exponential: Option<i32>,
}

pub(crate) struct PercidMeter {
    pub(crate) scope: InstrumentationScope,
    options: Arc<Options>,
    errors: Arc<Errors>,
    instruments: Mutex<Vec<Arc<dyn Collected>>>,
}

type Shared<T> = Arc<dyn SyncInstrument<T> + Send + Sync>;

/// Maximum number of boundaries in percid's buckets.
const MOST_BOUNDARIES: usize = percid::Buckets::MAX - 1;

impl PercidMeter {
    pub(crate) fn new(
        scope: InstrumentationScope,
        options: Arc<Options>,
        errors: Arc<Errors>,
    ) -> PercidMeter {
        PercidMeter { scope, options, errors, instruments: Mutex::default() }
    }

    /// Returns the metrics of all instruments, or `None` if there are none.
    pub(crate) fn collect(&self, time: SystemTime) -> Option<ScopeMetrics> {
        // Callbacks may create instruments: they are called without the lock.
        let instruments = self.instruments.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let metrics = instruments.iter().filter_map(|it| metric(&**it, time, &self.errors));
        let metrics: Vec<_> = metrics.collect();
        let scope = self.scope.clone();
        (!metrics.is_empty()).then_some(ScopeMetrics { scope, metrics })
    }

    /// Returns the instrument of this identity and type. Creates it by `make` if there is none.
    fn registered<I: Collected>(
        &self,
        identity: Identity,
        make: impl FnOnce(Identity) -> I,
    ) -> Arc<I> {
        let mut instruments = self.instruments.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&Arc<dyn Collected>| it.identity().is_same(&identity);
        let of_type = |it: &Arc<dyn Collected>| {
            let it: Arc<dyn Any + Send + Sync> = Arc::clone(it) as _;
            it.downcast::<I>().ok()
        };
        if let Some(known) = instruments.iter().filter(is_it).find_map(of_type) {
            return known;
        }
        let is_in_conflict = instruments.iter().any(|it| it.identity().has_name_of(&identity));
        let name = identity.name.to_string();
        let instrument = Arc::new(make(identity));
        instruments.push(Arc::clone(&instrument) as _);
        drop(instruments);
        if is_in_conflict {
            self.errors.tell(&Error::Conflict(name));
        }
        instrument
    }

    fn series<C: Cell>(
        &self,
        name: &str,
        new_cell: impl Fn() -> C + Send + Sync + 'static,
    ) -> SeriesMap<C> {
        let (limit, errors) = (self.options.cardinality_limit, Arc::clone(&self.errors));
        let name = name.to_owned();
        let tell = move || errors.tell(&Error::Overflow { name: name.clone(), limit });
        SeriesMap::new(Box::new(new_cell), limit, Box::new(tell))
    }

    fn instrument<T: Copy, C: Record<T>>(
        &self,
        identity: Result<Identity, Error>,
        new_cell: impl Fn() -> C + Send + Sync + 'static,
    ) -> Shared<T> {
        match identity {
            Ok(identity) => self.registered(identity, |identity| {
                let series = self.series(&identity.name, new_cell);
                Instrument::new(identity, series)
            }),
            Err(error) => {
                self.errors.tell(&error);
                Arc::new(Ignoring)
            }
        }
    }

    fn histogram<T: Copy>(&self, builder: HistogramBuilder<'_, Histogram<T>>) -> Histogram<T>
    where
        Distributed: Record<T>,
    {
        let identity = Identity::new(builder.name, builder.description, builder.unit);
        let shape = match builder.boundaries {
            Some(bounds) => explicit(bounds),
            None => Some(self.default_shape()),
        };
        let identity = identity.and_then(|identity| match shape {
            Some(_) => Ok(identity),
            None => Err(Error::Boundaries(identity.name.into_owned())),
        });
        let shape = shape.unwrap_or_else(|| self.default_shape());
        Histogram::new(self.instrument(identity, move || Distributed::new(&shape)))
    }

    fn default_shape(&self) -> Shape {
        match self.options.exponential {
            Some(scale) => Shape::Exponential(scale),
            None => Shape::Explicit(Limits::new(DEFAULT_BOUNDS)),
        }
    }

    fn observe<T: Numeric, M: Meaning>(
        &self,
        name: Cow<'static, str>,
        description: Option<Cow<'static, str>>,
        unit: Option<Cow<'static, str>>,
        callbacks: Vec<Callback<T>>,
    ) {
        match Identity::new(name, description, unit) {
            Ok(identity) => {
                let limit = self.options.cardinality_limit;
                let new = |identity| Observable::<T, M>::new(identity, limit);
                self.registered(identity, new).ask_also(callbacks);
            }
            Err(error) => self.errors.tell(&error),
        }
    }
}

/// Returns the shape of these boundaries, or `None` if they are not finite and ascending, or too
/// many.
fn explicit(bounds: Vec<f64>) -> Option<Shape> {
    let are_finite = bounds.iter().all(|bound| bound.is_finite());
    let are_ascending = bounds.is_sorted_by(|one, next| one < next);
    let are_valid = are_finite && are_ascending && bounds.len() <= MOST_BOUNDARIES;
    are_valid.then(|| Shape::Explicit(Limits::new(bounds)))
}

macro_rules! instruments {
    ($($function:ident: $instrument:ident<$number:ty>, $cell:expr;)*) => {
        $(fn $function(
            &self,
            builder: InstrumentBuilder<'_, $instrument<$number>>,
        ) -> $instrument<$number> {
            let identity = Identity::new(builder.name, builder.description, builder.unit);
            $instrument::new(self.instrument(identity, $cell))
        })*
    };
}

macro_rules! observables {
    ($($function:ident: $instrument:ident<$number:ty>, $meaning:ty;)*) => {
        $(fn $function(
            &self,
            builder: AsyncInstrumentBuilder<'_, $instrument<$number>, $number>,
        ) -> $instrument<$number> {
            let AsyncInstrumentBuilder { name, description, unit, callbacks, .. } = builder;
            self.observe::<$number, $meaning>(name, description, unit, callbacks);
            $instrument::new()
        })*
    };
}

impl InstrumentProvider for PercidMeter {
    instruments! {
        u64_counter: Counter<u64>, IntegerSum::<Counted>::new;
        f64_counter: Counter<f64>, FloatSum::<Counted>::new;
        i64_up_down_counter: UpDownCounter<i64>, IntegerSum::<Balance>::new;
        f64_up_down_counter: UpDownCounter<f64>, FloatSum::<Balance>::new;
        u64_gauge: Gauge<u64>, LastValue::<u64>::new;
        i64_gauge: Gauge<i64>, LastValue::<i64>::new;
        f64_gauge: Gauge<f64>, LastValue::<f64>::new;
    }

    observables! {
        u64_observable_counter: ObservableCounter<u64>, Counted;
        f64_observable_counter: ObservableCounter<f64>, Counted;
        i64_observable_up_down_counter: ObservableUpDownCounter<i64>, Balance;
        f64_observable_up_down_counter: ObservableUpDownCounter<f64>, Balance;
        u64_observable_gauge: ObservableGauge<u64>, Level;
        i64_observable_gauge: ObservableGauge<i64>, Level;
        f64_observable_gauge: ObservableGauge<f64>, Level;
    }

    fn u64_histogram(&self, builder: HistogramBuilder<'_, Histogram<u64>>) -> Histogram<u64> {
        self.histogram(builder)
    }

    fn f64_histogram(&self, builder: HistogramBuilder<'_, Histogram<f64>>) -> Histogram<f64> {
        self.histogram(builder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_finite_and_ascend_and_are_2047_at_most() {
        let many = |bounds: u32| (0..bounds).map(f64::from).collect();
        for (bounds, are_valid) in [
            (vec![], true),
            (vec![-1.0, 0.5], true),
            (vec![0.5, 0.5], false),
            (vec![1.0, f64::INFINITY], false),
            (vec![f64::NEG_INFINITY, 1.0], false),
            (vec![f64::NAN], false),
            (vec![2.0, 1.0], false),
            (many(2047), true),
            (many(2048), false),
        ] {
            let what = format!("{} {:?}", bounds.len(), bounds.first());
            assert_eq!(explicit(bounds).is_some(), are_valid, "{what}");
        }
    }
}
