//! The types of metrics that a registry has.

use std::io::{self, Write};

use super::description::Described;
use crate::page::{Kind, Page};
use crate::{Counter, FloatCounter, Gauge, Histogram};

/// A type of metrics that may be registered: [`Counter`], [`FloatCounter`], [`Gauge`] and [`Histogram`].
pub trait Metric: Sample {}

impl Metric for Counter {}
impl Metric for FloatCounter {}
impl Metric for Gauge {}
impl Metric for Histogram {}

/// What a page needs of a type of metrics.
pub trait Sample: Send + Sync + Sized + 'static {
    /// What the page calls it.
    const KIND: Kind;

    /// One of value 0.
    fn new(described: &Described) -> Self;

    /// Writes its samples, and returns how many values it could not record.
    fn write(&self, page: &mut Page<'_, impl Write>, name: &str, labels: &str) -> io::Result<u64>;
}

impl Sample for Counter {
    const KIND: Kind = Kind::Counter;

    fn new(_: &Described) -> Counter {
        Counter::default()
    }

    fn write(&self, page: &mut Page<'_, impl Write>, name: &str, labels: &str) -> io::Result<u64> {
        page.counter(name, labels, self.get()).map(|()| 0)
    }
}

impl Sample for FloatCounter {
    const KIND: Kind = Kind::Counter;

    fn new(_: &Described) -> FloatCounter {
        FloatCounter::default()
    }

    fn write(&self, page: &mut Page<'_, impl Write>, name: &str, labels: &str) -> io::Result<u64> {
        page.float_counter(name, labels, self.get())?;
        Ok(self.as_ref().unrecorded())
    }
}

impl Sample for Gauge {
    const KIND: Kind = Kind::Gauge;

    fn new(_: &Described) -> Gauge {
        Gauge::default()
    }

    fn write(&self, page: &mut Page<'_, impl Write>, name: &str, labels: &str) -> io::Result<u64> {
        page.sample((name, ""), labels, None, self.get()).map(|()| 0)
    }
}

impl Sample for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn new(described: &Described) -> Histogram {
        Histogram::with_limits(&described.limits)
    }

    fn write(&self, page: &mut Page<'_, impl Write>, name: &str, labels: &str) -> io::Result<u64> {
        page.histogram(name, labels, &self.snapshot())?;
        Ok(self.unrecorded())
    }
}
