//! The facade's handles: their traits, implemented for the metrics of families.

use std::sync::{Mutex, PoisonError};

use metrics::{CounterFn, GaugeFn, HistogramFn, Key};

use crate::family::OfId;
use crate::{Gauge, Histogram};

/// A counter. It is never cloned, so it needs no reference count of its own.
#[derive(Debug, Default)]
pub(super) struct Count(percid::Counter);

impl Count {
    pub(super) fn get(&self) -> u64 {
        self.0.sum() as u64
    }
}

/// Held while an observer raises a counter. Two at a time could both add the difference.
static RAISING: Mutex<()> = Mutex::new(());

impl CounterFn for OfId<Key, Count> {
    #[inline]
    fn increment(&self, value: u64) {
        // Two's complement: the sum is right modulo 2^64.
        self.metric().0.add(value as i64);
    }

    fn absolute(&self, value: u64) {
        let _alone = RAISING.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = value.saturating_sub(self.metric().get());
        self.metric().0.add(missing as i64);
    }
}

impl GaugeFn for OfId<Key, Gauge> {
    #[inline]
    fn increment(&self, value: f64) {
        self.metric().inc_by(value);
    }

    #[inline]
    fn decrement(&self, value: f64) {
        self.metric().dec_by(value);
    }

    fn set(&self, value: f64) {
        self.metric().set(value);
    }
}

impl HistogramFn for OfId<Key, Histogram> {
    #[inline]
    fn record(&self, value: f64) {
        self.metric().observe(value);
    }

    #[inline]
    fn record_many(&self, value: f64, count: usize) {
        self.metric().observe_many(value, count as u64);
    }
}
