//! The meter provider.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};

use crate::data::Collection;
use crate::error::{Error, Errors, Handler};
use crate::meter::{Options, PercidMeter};
use crate::resource;

/// The specification's limit of series.
const DEFAULT_LIMIT: usize = 2000;

/// The finest scale of percid's exponential histograms.
const FINEST: u8 = 8;

/// Instruments of the OpenTelemetry API that record on their CPU. Clones are the same provider.
///
/// ```
/// use opentelemetry::KeyValue;
/// use opentelemetry::metrics::MeterProvider;
/// use percid_opentelemetry::PercidMeterProvider;
///
/// let provider = PercidMeterProvider::builder()
///     .with_resource([KeyValue::new("service.name", "shop")])
///     .build();
/// let meter = provider.meter("checkout");
///
/// let orders = meter.u64_counter("orders").with_unit("{order}").build();
/// orders.add(1, &[KeyValue::new("country", "fr")]);
///
/// // Where the attributes are known beforehand, nothing is looked up.
/// let french = orders.bind(&[KeyValue::new("country", "fr")]);
/// french.add(2);
///
/// assert_eq!(provider.collect().scopes[0].metrics[0].name, "orders");
/// ```
///
/// [`opentelemetry::global::set_meter_provider`] takes a clone of it.
///
/// # Contract
///
/// * **Series**: attributes are a set. Their order does not matter. If a key occurs several times,
///   the last attribute is used. The [limit](Builder::with_cardinality_limit) is the maximum number
///   of an instrument's series. The series without attributes is not counted. Values with
///   attributes beyond the limit are recorded in the series with the attribute
///   `otel.metric.overflow` = `true`.
/// * **Values**: counters ignore negative values. Sums and histograms ignore NaN and infinities,
///   which would stay in a sum forever. A gauge has the value that was recorded last, without
///   exceptions. Histograms record negative values, and have no sum from then on.
/// * **Exactness**: no value is lost or counted twice, also during a collection. Sums of integers
///   are exact modulo 2^64. Sums of floats and of histograms are rounded as floats are. Count and
///   sum of a histogram change in one step.
/// * **Instruments**: instruments of a scope with the same name (ignoring case), kind, unit and
///   description are one instrument. This holds for histograms of `u64` and `f64`, too; the
///   boundaries are those of the first.
/// * **Threads**: any number of threads may use everything at once.
/// * **Signals**: a signal handler may use a bound counter, up-down counter or gauge, and a bound
///   histogram with explicit boundaries. It may use nothing else.
/// * **Fork**: a child continues with the counts of its parent, in memory of its own. Series keep
///   their start times. The child has no exporter.
/// * **Cost**: a bound instrument costs as much as `percid::Counter` and `percid::Buckets`, plus a
///   virtual call. Attributes add their hash, a `percid::Local` and a comparison, if this CPU has
///   used them in this order before. Otherwise they are sorted and looked up in a map under a lock,
///   which allocates. So are all attributes beyond the limit. A gauge's value is one word that all
///   threads write.
/// * **Memory**: series are never removed. Each takes percid's memory for each ID that used it. Its
///   attributes are stored once, and once more for each ID and each order in which they were used.
#[derive(Clone)]
pub struct PercidMeterProvider {
    shared: Arc<Shared>,
}

struct Shared {
    resource: Arc<[KeyValue]>,
    options: Arc<Options>,
    errors: Arc<Errors>,
    meters: Mutex<Vec<Arc<PercidMeter>>>,
}

impl PercidMeterProvider {
    /// Returns a builder with the specification's defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the series of all instruments. Callbacks of observable instruments are called in
    /// this thread.
    ///
    /// A collection reads a word for each series and ID (for histograms, one for each bucket).
    /// Recording does not wait for it. A thread that adds a series to an instrument waits while
    /// that instrument is read. A callback must not collect.
    ///
    /// ```
    /// use opentelemetry::metrics::MeterProvider;
    ///
    /// let provider = percid_opentelemetry::PercidMeterProvider::builder().build();
    /// let meter = provider.meter("pool");
    /// meter.u64_observable_gauge("size").with_callback(|size| size.observe(4, &[])).build();
    /// assert_eq!(provider.collect().scopes[0].metrics[0].name, "size");
    /// ```
    pub fn collect(&self) -> Collection {
        let time = SystemTime::now();
        let meters = self.shared.meters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let scopes = meters.iter().filter_map(|meter| meter.collect(time)).collect();
        Collection { time, resource: Arc::clone(&self.shared.resource), scopes }
    }

    /// Returns the number of errors, see [`Error`].
    ///
    /// ```
    /// use opentelemetry::metrics::MeterProvider;
    ///
    /// let provider = percid_opentelemetry::PercidMeterProvider::builder().build();
    /// provider.meter("shop").u64_counter("no name").build().add(1, &[]);
    /// assert_eq!(provider.errors(), 1);
    /// ```
    pub fn errors(&self) -> u64 {
        self.shared.errors.count()
    }

    #[cfg(feature = "otlp")]
    pub(crate) fn tell(&self, error: &Error) {
        self.shared.errors.tell(error);
    }
}

impl MeterProvider for PercidMeterProvider {
    /// Returns the meter of a scope. Scopes of the same name, version, schema URL and attributes
    /// have one meter.
    fn meter_with_scope(&self, scope: InstrumentationScope) -> Meter {
        let shared = &self.shared;
        let mut meters = shared.meters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = meters.iter().find(|meter| meter.scope == scope) {
            return Meter::new(Arc::clone(known) as _);
        }
        let (options, errors) = (Arc::clone(&shared.options), Arc::clone(&shared.errors));
        let meter = Arc::new(PercidMeter::new(scope, options, errors));
        meters.push(Arc::clone(&meter));
        Meter::new(meter)
    }
}

impl fmt::Debug for PercidMeterProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meters = self.shared.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let scopes: Vec<&str> = meters.iter().map(|meter| meter.scope.name()).collect();
        f.debug_struct("PercidMeterProvider").field("meters", &scopes).finish_non_exhaustive()
    }
}

/// A builder of a [`PercidMeterProvider`].
#[derive(Default)]
#[must_use]
pub struct Builder {
    resource: Vec<KeyValue>,
    cardinality_limit: Option<usize>,
    exponential: Option<i32>,
    handler: Option<Handler>,
}

impl Builder {
    /// Adds attributes of the resource, which describes the program. The default of `service.name`
    /// is `unknown_service:` and the name of the program's file. Environment variables are not
    /// read.
    pub fn with_resource(mut self, attributes: impl IntoIterator<Item = KeyValue>) -> Builder {
        self.resource.extend(attributes);
        self
    }

    /// Sets the maximum number of an instrument's series; the default is 2000.
    pub fn with_cardinality_limit(mut self, limit: usize) -> Builder {
        self.cardinality_limit = Some(limit);
        self
    }

    /// Gives histograms without boundaries of their own exponential buckets: 2^`scale` buckets
    /// between two powers of two. The finest scale is 8; a larger value means 8. If more than 160
    /// buckets would be in use, a coarser scale is reported.
    ///
    /// Values of at most 2^-128 count as zero, those beyond 2^128 as 2^128.
    ///
    /// ```
    /// use opentelemetry::metrics::MeterProvider;
    /// use percid_opentelemetry::data::{Buckets, Data};
    ///
    /// let builder = percid_opentelemetry::PercidMeterProvider::builder();
    /// let provider = builder.with_exponential_histograms(3).build();
    /// provider.meter("shop").f64_histogram("price").build().record(4.0, &[]);
    ///
    /// let collection = provider.collect();
    /// let Data::Histogram { points } = &collection.scopes[0].metrics[0].data else { panic!() };
    /// let Buckets::Exponential { scale, positive, .. } = &points[0].value.buckets else { panic!() };
    /// // Up to 2^(16/8).
    /// assert_eq!((*scale, positive.offset), (3, 15));
    /// ```
    pub fn with_exponential_histograms(mut self, scale: u8) -> Builder {
        self.exponential = Some(scale.min(FINEST).into());
        self
    }

    /// Sets the error handler; the default prints to standard error. `handler` is called in the
    /// thread that detected the error, without a lock of the provider. If it panics, the call that
    /// detected the error panics.
    ///
    /// ```
    /// use opentelemetry::metrics::MeterProvider;
    /// use percid_opentelemetry::{Error, PercidMeterProvider};
    ///
    /// let provider = PercidMeterProvider::builder()
    ///     .with_error_handler(|error| assert_eq!(*error, Error::Name("no name".into())))
    ///     .build();
    /// provider.meter("shop").u64_counter("no name").build();
    /// ```
    pub fn with_error_handler(
        mut self,
        handler: impl Fn(&Error) + Send + Sync + 'static,
    ) -> Builder {
        self.handler = Some(Box::new(handler));
        self
    }

    /// Builds the provider.
    pub fn build(self) -> PercidMeterProvider {
        let options = Options {
            cardinality_limit: self.cardinality_limit.unwrap_or(DEFAULT_LIMIT),
            exponential: self.exponential,
        };
        let shared = Shared {
            resource: resource::with_defaults(self.resource).into(),
            options: Arc::new(options),
            errors: Arc::new(Errors::new(self.handler)),
            meters: Mutex::default(),
        };
        PercidMeterProvider { shared: Arc::new(shared) }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("resource", &self.resource)
            .field("cardinality_limit", &self.cardinality_limit)
            .field("exponential", &self.exponential)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_what_was_said() {
        let builder = PercidMeterProvider::builder().with_resource([KeyValue::new("a", 1)]);
        let builder = builder.with_cardinality_limit(7).with_exponential_histograms(9);
        let said = format!("{builder:?}");
        assert!(said.starts_with("Builder { resource: [KeyValue {"), "{said}");
        assert!(said.ends_with("cardinality_limit: Some(7), exponential: Some(8), .. }"), "{said}");
        let options = |builder: Builder| {
            let provider = builder.build();
            let options = &provider.shared.options;
            (options.cardinality_limit, options.exponential)
        };
        assert_eq!(options(builder), (7, Some(8)));
        assert_eq!(options(PercidMeterProvider::builder()), (2000, None));
        let fine = PercidMeterProvider::builder().with_exponential_histograms(0);
        assert_eq!(options(fine), (2000, Some(0)));
        let provider = PercidMeterProvider::builder().build();
        let meters = ["b", "c", "b"].map(|name| provider.meter(name));
        let expected = "PercidMeterProvider { meters: [\"b\", \"c\"], .. }";
        assert_eq!((format!("{provider:?}").as_str(), meters.len()), (expected, 3));
    }
}
