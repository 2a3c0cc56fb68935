//! A recorder for the facade `metrics`, whose counters, gauges and histograms are percid's.

mod builder;
mod descriptions;
mod handle;
#[cfg(feature = "http-listener")]
mod http;
mod idle;
mod kinds;
mod render;
mod shapes;
mod store;
#[cfg(feature = "http-listener")]
mod timed_stream;

use std::fmt;
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

pub use builder::{BuildError, PrometheusBuilder};
pub use handle::PrometheusHandle;
pub use shapes::Matcher;
use store::Store;

/// A recorder for the facade `metrics`: what `counter!`, `gauge!` and `histogram!` write to.
///
/// [`PrometheusBuilder`] makes it. It may be the process's recorder, a thread's
/// (`metrics::with_local_recorder`), or lie below layers of `metrics-util`.
///
/// * **Threads**: any number. Updates stay on the CPU's own lines; a metric that a CPU has used before is
///   found without a lock.
/// * **Signals**: handles that a program keeps may be used in a handler, as far as the metric may:
///   counters, gauges by `increment` and `decrement`, histograms with buckets. The macros may not.
/// * **`absolute`** raises a counter to what an observer has seen elsewhere. Of observers that come at the
///   same time as increments, each of them is contained or added to; the facade asks for no more.
#[derive(Clone)]
pub struct PrometheusRecorder {
    store: Arc<Store>,
}

impl PrometheusRecorder {
    /// A handle by which the metrics are read.
    pub fn handle(&self) -> PrometheusHandle {
        PrometheusHandle::new(Arc::clone(&self.store))
    }
}

impl Recorder for PrometheusRecorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.store.descriptions.add(key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.store.descriptions.add(key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.store.descriptions.add(key, unit, description);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.store.counters.handle(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.store.gauges.handle(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.store.histogram(key))
    }
}

impl fmt::Debug for PrometheusRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrometheusRecorder").finish_non_exhaustive()
    }
}
