//! Histograms.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

use percid_metrics::Histogram;
use percid_metrics::histogram::Limits;

use super::record::{Cell, Record};
use crate::data::{Buckets, Data, Distribution, Point};
use crate::exponential;

/// The default boundaries of histograms in the specification.
pub(crate) const DEFAULT_BOUNDS: [f64; 15] = [
    0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0,
    10000.0,
];

/// The buckets of a histogram.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Explicit(Limits),
    Exponential(i32),
}

pub(crate) struct Distributed {
    values: Histogram,
    has_negative: AtomicBool,
}

impl Distributed {
    pub(crate) fn new(shape: &Shape) -> Distributed {
        let values = match shape {
            Shape::Explicit(limits) => Histogram::with_limits(limits),
            Shape::Exponential(scale) => Histogram::native(*scale).unwrap_or_default(),
        };
        Distributed { values, has_negative: AtomicBool::new(false) }
    }
}

impl Cell for Distributed {
    type Value = Distribution;

    fn read(&self) -> Option<Distribution> {
        let (count, sum, buckets) = match self.values.native_snapshot() {
            Some(native) => (native.count, native.sum, exponential::buckets(&native)),
            None => {
                let read = self.values.snapshot();
                let (mut bounds, mut counts): (Vec<f64>, Vec<u64>) =
                    read.buckets.into_iter().unzip();
                // The last bucket is above all boundaries. Alone, it only repeats the count.
                bounds.pop();
                if bounds.is_empty() {
                    counts.clear();
                }
                (read.count, read.sum, Buckets::Explicit { bounds, counts })
            }
        };
        // Read after the values: if one of them is negative, its flag is visible.
        let sum = (!self.has_negative.load(Acquire)).then_some(sum);
        Some(Distribution { count, sum, buckets })
    }

    fn data(points: Vec<Point<Distribution>>) -> Data {
        Data::Histogram { points }
    }
}

impl Record<f64> for Distributed {
    #[inline]
    fn record(&self, value: f64) {
        // NaN and infinities would stay in the sum forever.
        if !value.is_finite() {
            return;
        }
        // #[gamma::skip(logical.and_remove_right, reason = "it only saves a write")]
        if value < 0.0 && !self.has_negative.load(Relaxed) {
            self.has_negative.store(true, Release);
        }
        self.values.observe(value);
    }
}

impl Record<u64> for Distributed {
    #[inline]
    fn record(&self, value: u64) {
        self.values.observe(value as f64);
    }
}
