//! What a collection has: the series of all instruments, as they were at some time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::{InstrumentationScope, KeyValue};

/// What all instruments of a provider have recorded since they began (*cumulative temporality*).
///
/// ```
/// use opentelemetry::metrics::MeterProvider;
/// use percid_opentelemetry::PercidMeterProvider;
/// use percid_opentelemetry::data::{Data, Number};
///
/// let provider = PercidMeterProvider::builder().build();
/// provider.meter("shop").u64_counter("orders").build().add(3, &[]);
/// let collection = provider.collect();
/// let Data::Sum { points, .. } = &collection.scopes[0].metrics[0].data else { panic!("a sum") };
/// assert_eq!(points[0].value, Number::U64(3));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Collection {
    /// When it was made.
    pub time: SystemTime,
    /// What the program is.
    pub resource: Arc<[KeyValue]>,
    /// What each meter has: those that have nothing are left out.
    pub scopes: Vec<ScopeMetrics>,
}

/// What a meter's instruments have recorded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScopeMetrics {
    /// The meter's scope.
    pub scope: InstrumentationScope,
    /// What each instrument has: those that have nothing are left out.
    pub metrics: Vec<Metric>,
}

/// What an instrument has recorded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Metric {
    /// The instrument's name.
    pub name: Cow<'static, str>,
    /// What it is for; empty, if nothing was said.
    pub description: Cow<'static, str>,
    /// What its values are in; empty, if nothing was said.
    pub unit: Cow<'static, str>,
    /// Its series.
    pub data: Data,
}

/// An instrument's series, in no order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Data {
    /// Of a counter, or of an up-down counter.
    Sum {
        /// Whether it is a counter's, which never falls.
        is_monotonic: bool,
        /// The series.
        points: Vec<Point<Number>>,
    },
    /// Of a gauge.
    Gauge {
        /// The series.
        points: Vec<Point<Number>>,
    },
    /// Of a histogram.
    Histogram {
        /// The series.
        points: Vec<Point<Distribution>>,
    },
}

/// A series.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Point<T> {
    /// Its attributes, sorted by key, each key once.
    pub attributes: Arc<[KeyValue]>,
    /// When it began. (Without meaning for a gauge.)
    pub start: SystemTime,
    /// What it has.
    pub value: T,
}

/// A number of an instrument's type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of instruments of `u64`. Sums are modulo 2^64.
    U64(u64),
    /// Of instruments of `i64`. Sums wrap around as `i64` does.
    I64(i64),
    /// Of instruments of `f64`.
    F64(f64),
}

/// What a histogram has recorded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their sum. `None`, once one was negative: OTLP wants sums of histograms that never fall.
    pub sum: Option<f64>,
    /// How they are distributed.
    pub buckets: Buckets,
}

/// How values are distributed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Buckets {
    /// By boundaries that were chosen.
    Explicit {
        /// The boundaries. Each belongs to the bucket below it.
        bounds: Vec<f64>,
        /// The count of each bucket; one more than there are boundaries. Empty without boundaries.
        counts: Vec<u64>,
    },
    /// By powers of 2^(2^-`scale`).
    Exponential {
        /// The scale.
        scale: i32,
        /// How many values were from -2^-128 to 2^-128.
        zero_count: u64,
        /// The positive values.
        positive: ExponentialBuckets,
        /// The amounts of the negative values.
        negative: ExponentialBuckets,
    },
}

/// Buckets in a row: the count at place *n* is that of the bucket *i* = `offset` + *n*, which is above
/// 2^(*i* 2^-scale) and goes up to 2^((*i* + 1) 2^-scale).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExponentialBuckets {
    /// The first bucket's index.
    pub offset: i32,
    /// The counts.
    pub counts: Vec<u64>,
}
