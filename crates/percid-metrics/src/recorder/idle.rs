//! Metrics that have not changed for some time.
//!
//! If there is no handle to such a metric, it is removed. If a program still has a handle to it, it
//! is only left out of the page until it changes; its value is kept.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::Key;
use metrics_util::{MetricKind, MetricKindMask};

use super::kinds::Count;
use crate::{Family, Gauge, Histogram};

/// A clock, by which metrics are idle.
#[derive(Clone)]
pub(super) struct Clock(pub(super) Arc<dyn Fn() -> Instant + Send + Sync>);

impl Default for Clock {
    fn default() -> Self {
        Clock(Arc::new(Instant::now))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[derive(Debug)]
pub(super) struct Idle {
    clock: Clock,
    timeout: Option<Duration>,
    kinds: MetricKindMask,
    counters: LastSeen,
    gauges: LastSeen,
    histograms: LastSeen,
}

type LastSeen = HashMap<Key, Seen>;

/// The state of a metric at the last check.
#[derive(Debug)]
struct Seen {
    value: u64,
    /// Time of the check that detected the last change.
    changed: Instant,
    /// `true` if the last change was too long ago at the last check. It is stored, so that a value
    /// is on a page before its metric is removed, however long the page takes.
    is_idle: bool,
}

impl Idle {
    pub(super) fn new(kinds: MetricKindMask, timeout: Option<Duration>, clock: Clock) -> Idle {
        let (counters, gauges) = (LastSeen::new(), LastSeen::new());
        Idle { clock, timeout, kinds, counters, gauges, histograms: LastSeen::new() }
    }

    pub(super) fn counters(&mut self, family: &Family<Key, Count>) {
        let Some(timeout) = self.timeout_of(MetricKind::Counter) else { return };
        look((timeout, (self.clock.0)()), &mut self.counters, family, Count::get);
    }

    pub(super) fn gauges(&mut self, family: &Family<Key, Gauge>) {
        let Some(timeout) = self.timeout_of(MetricKind::Gauge) else { return };
        look((timeout, (self.clock.0)()), &mut self.gauges, family, |gauge| gauge.get().to_bits());
    }

    pub(super) fn histograms(&mut self, family: &Family<Key, Histogram>) {
        let Some(timeout) = self.timeout_of(MetricKind::Histogram) else { return };
        look((timeout, (self.clock.0)()), &mut self.histograms, family, Histogram::count);
    }

    /// Returns `true` if a metric is left out of the page.
    pub(super) fn hides(&self, kind: MetricKind, key: &Key) -> bool {
        let last_seen = match kind {
            MetricKind::Counter => &self.counters,
            MetricKind::Gauge => &self.gauges,
            MetricKind::Histogram => &self.histograms,
        };
        last_seen.get(key).is_some_and(|seen| seen.is_idle)
    }

    fn timeout_of(&self, kind: MetricKind) -> Option<Duration> {
        self.timeout.filter(|_| self.kinds.matches(kind))
    }
}

/// Records the changed metrics, and removes those that have not changed for too long.
fn look<M: Send + Sync>(
    (timeout, now): (Duration, Instant),
    last_seen: &mut LastSeen,
    family: &Family<Key, M>,
    value: impl Fn(&M) -> u64,
) {
    family.for_each(|key, metric| {
        let value = value(metric);
        // #[gamma::skip(literal, reason = "it is decided below")]
        let new = Seen { value, changed: now, is_idle: false };
        let seen = last_seen.entry(key.clone()).or_insert(new);
        if seen.value != value {
            (seen.value, seen.changed) = (value, now);
        }
        seen.is_idle = now - seen.changed >= timeout;
    });
    let is_idle = |last_seen: &LastSeen, key: &Key, metric: &M| {
        let seen = last_seen.get(key);
        seen.is_some_and(|seen| seen.is_idle && seen.value == value(metric))
    };
    family.forget(last_seen, is_idle, |last_seen, key| _ = last_seen.remove(key));
}
