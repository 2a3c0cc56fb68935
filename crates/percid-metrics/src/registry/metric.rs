//! The types of metrics in a registry.

use std::io::{self, Write};

use super::description::Described;
use crate::page::{Kind, PageWriter};
use crate::{Counter, FloatCounter, Gauge, Histogram};

/// A type of metrics that can be registered: [`Counter`], [`FloatCounter`], [`Gauge`] and
/// [`Histogram`].
pub trait Metric: Typed {}

impl Metric for Counter {}
impl Metric for FloatCounter {}
impl Metric for Gauge {}
impl Metric for Histogram {}

/// A metric of any of these types. So lookup and output are compiled once for all types.
#[derive(Debug)]
pub enum Any {
    Counter(Counter),
    FloatCounter(FloatCounter),
    Gauge(Gauge),
    Histogram(Histogram),
}

/// A type of metrics, which is one of [`Any`].
pub trait Typed: Sized + 'static {
    /// The kind on the page.
    const KIND: Kind;

    /// Creates a metric of value 0.
    fn make(described: &Described) -> Any;

    /// Returns the metric, if it is of this type.
    fn downcast(any: &Any) -> Option<&Self>;
}

macro_rules! typed {
    ($type:ident, $kind:ident, $described:ident, $new:expr) => {
        impl Typed for $type {
            const KIND: Kind = Kind::$kind;

            fn make($described: &Described) -> Any {
                Any::$type($new)
            }

            #[inline(always)]
            fn downcast(any: &Any) -> Option<&$type> {
                match any {
                    Any::$type(metric) => Some(metric),
                    _ => None,
                }
            }
        }
    };
}

typed!(Counter, Counter, _described, Counter::default());
typed!(FloatCounter, Counter, _described, FloatCounter::default());
typed!(Gauge, Gauge, _described, Gauge::default());
typed!(Histogram, Histogram, described, Histogram::with_limits(&described.limits));

impl Any {
    /// Writes its samples, and returns the number of values that it could not record.
    pub(super) fn write(
        &self,
        page: &mut PageWriter<'_, impl Write>,
        name: &str,
        labels: &str,
    ) -> io::Result<u64> {
        match self {
            Any::Counter(counter) => page.counter(name, labels, counter.get())?,
            Any::Gauge(gauge) => page.sample((name, ""), labels, None, gauge.get())?,
            Any::FloatCounter(counter) => {
                page.float_counter(name, labels, counter.get())?;
                return Ok(counter.as_ref().unrecorded());
            }
            Any::Histogram(histogram) => {
                page.histogram(name, labels, &histogram.snapshot())?;
                return Ok(histogram.unrecorded());
            }
        }
        Ok(0)
    }
}
