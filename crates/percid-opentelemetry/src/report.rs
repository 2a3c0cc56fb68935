//! percid's metrics as observable instruments of any meter.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::AsyncInstrument;
use percid_metrics::{Counter, Family, FloatCounter, Gauge};

/// A metric whose value an observable instrument of type `T` can report.
pub trait Reading<T> {
    /// Returns the current value.
    fn reading(&self) -> T;
}

impl Reading<u64> for Counter {
    fn reading(&self) -> u64 {
        self.get()
    }
}

impl Reading<f64> for FloatCounter {
    fn reading(&self) -> f64 {
        self.get()
    }
}

impl Reading<f64> for Gauge {
    fn reading(&self) -> f64 {
        self.get()
    }
}

impl Reading<i64> for percid::Counter {
    fn reading(&self) -> i64 {
        self.sum()
    }
}

impl Reading<f64> for percid::FloatCounter {
    fn reading(&self) -> f64 {
        self.sum()
    }
}

impl<T, R: Reading<T> + ?Sized> Reading<T> for &R {
    fn reading(&self) -> T {
        (**self).reading()
    }
}

impl<T, R: Reading<T> + ?Sized> Reading<T> for Arc<R> {
    fn reading(&self) -> T {
        (**self).reading()
    }
}

/// Returns a callback that reports `metric` with these attributes, for any observable instrument of
/// any meter.
///
/// The metric is only read when its meter is collected. So counting costs as much as percid's
/// metric.
///
/// ```
/// use opentelemetry::KeyValue;
/// use opentelemetry::metrics::MeterProvider;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use percid_metrics::{Counter, Gauge};
/// use percid_opentelemetry::report;
///
/// static BALANCE: percid::Counter = percid::Counter::new();
///
/// let provider = SdkMeterProvider::default();
/// let meter = provider.meter("shop");
///
/// let orders = Counter::default();
/// let callback = report(orders.clone(), [KeyValue::new("country", "fr")]);
/// meter.u64_observable_counter("orders").with_callback(callback).build();
/// meter.i64_observable_up_down_counter("balance").with_callback(report(&BALANCE, [])).build();
/// let temperature = Gauge::default();
/// meter.f64_observable_gauge("temperature").with_callback(report(temperature.clone(), [])).build();
///
/// orders.inc();
/// BALANCE.add(-7);
/// temperature.set(21.5);
/// ```
///
/// * **Cost**: a collection reads a word for each ID.
/// * **Threads, signals, fork**: those of the metric. The callback runs in the thread that
///   collects.
pub fn report<T, R>(
    metric: R,
    attributes: impl IntoIterator<Item = KeyValue>,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static
where
    R: Reading<T> + Send + Sync + 'static,
{
    let attributes: Vec<KeyValue> = attributes.into_iter().collect();
    move |instrument: &dyn AsyncInstrument<T>| instrument.observe(metric.reading(), &attributes)
}

/// Returns a callback that reports all metrics of `family`. `attributes` converts label sets to
/// attributes. Different label sets must have different attributes.
///
/// ```
/// use opentelemetry::KeyValue;
/// use opentelemetry::metrics::MeterProvider;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use percid_metrics::{Counter, Family};
/// use percid_opentelemetry::report_family;
///
/// let provider = SdkMeterProvider::default();
/// let meter = provider.meter("shop");
///
/// let orders = Family::<&str, Counter>::default();
/// let callback = report_family(orders.clone(), |country| vec![KeyValue::new("country", *country)]);
/// meter.u64_observable_counter("orders").with_callback(callback).build();
///
/// orders.with(&"fr", Counter::inc);
/// ```
///
/// * **Cost**: a collection visits an entry for each label set, and reads a word for each ID. A
///   thread that adds a label set waits while at most 3584 references are copied.
/// * **Threads, signals, fork**: those of the family. The callback runs in the thread that
///   collects.
pub fn report_family<T, S, R, C>(
    family: Family<S, R, C>,
    attributes: impl Fn(&S) -> Vec<KeyValue> + Send + Sync + 'static,
) -> impl Fn(&dyn AsyncInstrument<T>) + Send + Sync + 'static
where
    S: Send + Sync + 'static,
    R: Reading<T> + Send + Sync + 'static,
    C: Send + Sync + 'static,
{
    move |instrument: &dyn AsyncInstrument<T>| {
        family.for_each(|labels, metric| instrument.observe(metric.reading(), &attributes(labels)));
    }
}
