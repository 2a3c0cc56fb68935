//! The recorder, with the methods that the facade `metrics` calls.

use std::fmt;
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::handle::PrometheusHandle;
use super::store::Store;

/// A recorder for the facade `metrics`, to which `counter!`, `gauge!` and `histogram!` write.
///
/// [`PrometheusBuilder`](super::PrometheusBuilder) builds it. It may be the process's recorder, a
/// thread's (`metrics::with_local_recorder`), or lie below layers of `metrics-util`.
///
/// * **Threads**: any number. Updates stay on the CPU's own cache lines. A metric that a CPU has
///   used before is found without a lock.
/// * **Signals**: a handler may use handles that the program keeps, if the metric permits it:
///   counters, gauges by `increment` and `decrement`, histograms with buckets. It may not use the
///   macros.
/// * **`absolute`** raises a counter to a value that an observer has read elsewhere. Each increment
///   that runs concurrently with an observer is contained in the raised value or added to it. The
///   facade requires no more.
#[derive(Clone)]
pub struct PrometheusRecorder {
    pub(super) store: Arc<Store>,
}

impl PrometheusRecorder {
    /// Returns a handle that reads the metrics.
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
