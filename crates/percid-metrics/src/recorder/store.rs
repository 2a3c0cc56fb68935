//! All metrics of a recorder.

use std::sync::{Arc, Mutex, PoisonError};

use metrics::Key;

use super::descriptions::Descriptions;
use super::idle::Idle;
use super::kinds::Count;
use super::shapes::Shapes;
use crate::family::OfId;
use crate::{Family, Gauge, Histogram};

/// The settings of a recorder.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) shapes: Shapes,
    pub(super) quantiles: Vec<f64>,
    /// Labels of all metrics, with names that are valid on the page.
    pub(super) labels: Vec<(String, String)>,
    pub(super) unit_suffix: bool,
}

pub(super) struct Store {
    pub(super) settings: Arc<Settings>,
    pub(super) descriptions: Descriptions,
    pub(super) counters: Family<Key, Count>,
    pub(super) gauges: Family<Key, Gauge>,
    pub(super) histograms: Family<Key, Histogram>,
    pub(super) idle: Mutex<Idle>,
}

impl Store {
    pub(super) fn new(settings: Settings, idle: Idle) -> Store {
        Store {
            settings: Arc::new(settings),
            descriptions: Descriptions::default(),
            counters: Family::default(),
            gauges: Family::default(),
            histograms: Family::default(),
            idle: Mutex::new(idle),
        }
    }

    /// Returns the handle of a histogram. Its name selects its buckets.
    pub(super) fn histogram(&self, key: &Key) -> Arc<OfId<Key, Histogram>> {
        self.histograms.handle_or(key, || self.settings.shapes.histogram(key.name()))
    }

    /// Removes the metrics that have been idle for too long.
    pub(super) fn upkeep(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.counters(&self.counters);
        idle.gauges(&self.gauges);
        idle.histograms(&self.histograms);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use metrics::{Label, counter, gauge, histogram, with_local_recorder};
    use metrics_util::MetricKindMask;

    use crate::PrometheusBuilder;
    use crate::entries::most_visits;

    /// For any number of metrics, a thread with a new one waits only for a part of them.
    #[test]
    fn pages_and_upkeep_hold_a_lock_for_a_bounded_number_of_metrics() {
        let recorder = PrometheusBuilder::new()
            .idle_timeout(MetricKindMask::ALL, Some(Duration::ZERO))
            .build_recorder();
        with_local_recorder(&recorder, || {
            for n in 0..10_000 {
                let labels = vec![Label::new("n", n.to_string())];
                counter!("a", labels.clone()).increment(1);
                gauge!("b", labels.clone()).set(1.0);
                histogram!("c", labels).record(1.0);
            }
        });
        let store = &recorder.store;
        let lens = || (store.counters.len(), store.gauges.len(), store.histograms.len());
        let mut page = Vec::new();
        let render =
            || super::super::render::render(store, crate::Format::Text, &mut page).expect("memory");
        assert!((100..=4096).contains(&most_visits(render)));
        // A summary has seven quantiles, a sum and a count.
        assert_eq!(page.iter().filter(|&&byte| byte == b'\n').count(), 3 + 11 * 10_000);
        assert_eq!(lens(), (10_000, 10_000, 10_000));
        assert!((100..=4096).contains(&most_visits(|| store.upkeep())));
        assert_eq!(lens(), (0, 0, 0));
    }
}
