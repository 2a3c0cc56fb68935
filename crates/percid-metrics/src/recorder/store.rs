//! All metrics of a recorder.

use std::sync::{Arc, Mutex, PoisonError};

use metrics::Key;

use super::descriptions::Descriptions;
use super::idle::Idle;
use super::kinds::Count;
use super::shapes::Shapes;
use crate::family::OfId;
use crate::{Family, Gauge, Histogram};

/// How a recorder is set up.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) shapes: Shapes,
    pub(super) quantiles: Vec<f64>,
    /// Labels of all metrics, by names that the page may have.
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

    /// The handle of a histogram, whose buckets its name decides about.
    pub(super) fn histogram(&self, key: &Key) -> Arc<OfId<Key, Histogram>> {
        self.histograms.handle_or(key, || self.settings.shapes.histogram(key.name()))
    }

    /// Forgets what has been idle for too long, as of now.
    pub(super) fn upkeep(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.counters(&self.counters);
        idle.gauges(&self.gauges);
        idle.histograms(&self.histograms);
    }
}
