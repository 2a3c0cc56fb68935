//! The contents of a collection: the series of all instruments at one time.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::{InstrumentationScope, KeyValue};

/// The values that all instruments of a provider have recorded since they began (*cumulative
/// temporality*).
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
    /// Time at which it was made.
    pub time: SystemTime,
    /// The attributes of the program's resource.
    pub resource: Arc<[KeyValue]>,
    /// The metrics of each meter. Meters without metrics are left out.
    pub scopes: Vec<ScopeMetrics>,
}

/// The metrics of a meter's instruments.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScopeMetrics {
    /// The meter's scope.
    pub scope: InstrumentationScope,
    /// The metric of each instrument. Instruments without series are left out.
    pub metrics: Vec<Metric>,
}

/// The series of an instrument.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Metric {
    /// The instrument's name.
    pub name: Cow<'static, str>,
    /// The instrument's description; empty if there is none.
    pub description: Cow<'static, str>,
    /// The unit of its values; empty if there is none.
    pub unit: Cow<'static, str>,
    /// Its series.
    pub data: Data,
}

/// The series of an instrument, unordered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Data {
    /// The series of a counter or an up-down counter.
    Sum {
        /// `true` for a counter, which never falls.
        is_monotonic: bool,
        /// The series.
        points: Vec<Point<Number>>,
    },
    /// The series of a gauge.
    Gauge {
        /// The series.
        points: Vec<Point<Number>>,
    },
    /// The series of a histogram.
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
    /// Time at which it began. (Meaningless for a gauge.)
    pub start: SystemTime,
    /// The value.
    pub value: T,
}

/// A number of an instrument's type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A number of a `u64` instrument. Sums are modulo 2^64.
    U64(u64),
    /// A number of an `i64` instrument. Sums wrap around as `i64` does.
    I64(i64),
    /// A number of an `f64` instrument.
    F64(f64),
}

/// The recorded values of a histogram.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// The sum of the values. `None` if one was negative: OTLP requires sums of histograms that
    /// never fall.
    pub sum: Option<f64>,
    /// The distribution of the values.
    pub buckets: Buckets,
}

/// The distribution of values.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Buckets {
    /// Buckets with boundaries that the program chose.
    Explicit {
        /// The boundaries. Each belongs to the bucket below it.
        bounds: Vec<f64>,
        /// The count of each bucket; one more than there are boundaries. Empty without boundaries.
        counts: Vec<u64>,
    },
    /// Buckets with boundaries at the powers of 2^(2^-`scale`).
    Exponential {
        /// The scale.
        scale: i32,
        /// Number of values from -2^-128 to 2^-128.
        zero_count: u64,
        /// The positive values.
        positive: ExponentialBuckets,
        /// The absolute values of the negative values.
        negative: ExponentialBuckets,
    },
}

/// Consecutive buckets. The count at index *n* is that of the bucket *i* = `offset` + *n*. Bucket
/// *i* is above 2^(*i* 2^-scale) and goes up to 2^((*i* + 1) 2^-scale).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExponentialBuckets {
    /// The first bucket's index.
    pub offset: i32,
    /// The counts.
    pub counts: Vec<u64>,
}
