//! Implementations of prometheus-client's traits, for its registry.

use std::fmt::Error;
use std::hash::Hash;

use prometheus_client::encoding::{
    EncodeLabelSet, EncodeMetric, MetricEncoder, NativeHistogram, NativeHistogramBuckets,
    NoLabelSet,
};
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::histogram::NativeSnapshot;
use crate::{Counter, Family, FloatCounter, Gauge, Histogram};

impl EncodeMetric for Counter {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), Error> {
        encoder.encode_counter::<NoLabelSet, u64, u64>(&self.get(), None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Counter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for FloatCounter {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), Error> {
        encoder.encode_counter::<NoLabelSet, f64, f64>(&self.get(), None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for FloatCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for Gauge {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), Error> {
        encoder.encode_gauge(&self.get())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Gauge {
    const TYPE: MetricType = MetricType::Gauge;
}

/// If native buckets cannot be written, as in text, the non-empty buckets of a native histogram are
/// written as classic ones.
impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), Error> {
        let Some(native) = self.native_snapshot() else {
            let all = self.snapshot();
            return encoder.encode_histogram::<NoLabelSet>(all.sum, all.count, &all.buckets, None);
        };
        let classic = native.classic().buckets;
        let (positive, negative) =
            (Spans::from_buckets(&native.positive), Spans::from_buckets(&native.negative));
        encoder.encode_histogram_with_native::<NoLabelSet>(
            native.sum,
            native.count,
            &classic,
            None,
            NativeHistogram {
                schema: native.schema,
                zero_threshold: NativeSnapshot::ZERO_THRESHOLD,
                zero_count: native.zero,
                positive: positive.buckets(),
                negative: negative.buckets(),
                created: None,
            },
        )
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

/// Buckets as Prometheus encodes them: runs of neighbours, and the difference of each count to the
/// previous one.
struct Spans {
    spans: Vec<(i32, u32)>,
    deltas: Vec<i64>,
}

impl Spans {
    fn from_buckets(buckets: &[(i32, u64)]) -> Spans {
        let (mut spans, mut deltas) = (Vec::<(i32, u32)>::new(), Vec::new());
        let (mut next, mut before) = (0, 0);
        for &(index, count) in buckets {
            match spans.last_mut() {
                Some((_, length)) if index == next => *length += 1,
                _ => spans.push((index - next, 1)),
            }
            deltas.push(count as i64 - before);
            (next, before) = (index + 1, count as i64);
        }
        Spans { spans, deltas }
    }

    fn buckets(&self) -> NativeHistogramBuckets<'_> {
        NativeHistogramBuckets { spans: &self.spans, deltas: &self.deltas }
    }
}

impl<S, M, C> EncodeMetric for Family<S, M, C>
where
    S: Clone + Eq + Hash + EncodeLabelSet,
    M: EncodeMetric + TypedMetric,
{
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), Error> {
        let mut result = Ok(());
        self.for_each(|labels, metric| {
            if result.is_ok() {
                result = encoder.encode_family(labels).and_then(|encoder| metric.encode(encoder));
            }
        });
        result
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        Family::is_empty(self)
    }
}

impl<S, M: TypedMetric, C> TypedMetric for Family<S, M, C> {
    const TYPE: MetricType = M::TYPE;
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn a_registry_writes_them_as_its_own() {
        let mut registry = Registry::default();
        let (counter, gauge) = (Counter::default(), Gauge::default());
        let (float, histogram) = (FloatCounter::default(), Histogram::new([0.5, 1.0]));
        let family = Family::<Vec<(String, String)>, Counter>::default();
        registry.register("requests", "Requests", counter.clone());
        registry.register("seconds", "Seconds", float.clone());
        registry.register("in_flight", "In flight", gauge.clone());
        registry.register("sizes", "Sizes", histogram.clone());
        registry.register("errors", "Errors", family.clone());
        counter.inc_by(7);
        float.inc_by(0.25);
        gauge.set(-1.5);
        [0.5, 0.75, 8.0].into_iter().for_each(|value| histogram.observe(value));
        family.with(&vec![("code".to_owned(), "\"5\\\n".to_owned())], Counter::inc);
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("it is written");
        let expected = r#"# HELP requests Requests.
# TYPE requests counter
requests_total 7
# HELP seconds Seconds.
# TYPE seconds counter
seconds_total 0.25
# HELP in_flight In flight.
# TYPE in_flight gauge
in_flight -1.5
# HELP sizes Sizes.
# TYPE sizes histogram
sizes_sum 9.25
sizes_count 3
sizes_bucket{le="0.5"} 1
sizes_bucket{le="1.0"} 2
sizes_bucket{le="+Inf"} 3
# HELP errors Errors.
# TYPE errors counter
errors_total{code="\"5\\\n"} 1
# EOF
"#;
        assert_eq!(page, expected);
    }

    #[test]
    fn runs_of_buckets_are_written_as_differences() {
        let spans = Spans::from_buckets(&[(-3, 5), (-2, 4), (4, 10), (5, 10)]);
        assert_eq!(spans.spans, [(-3, 2), (5, 2)]);
        assert_eq!(spans.deltas, [5, -1, 6, 0]);
        assert!(Spans::from_buckets(&[]).spans.is_empty());
    }
}
