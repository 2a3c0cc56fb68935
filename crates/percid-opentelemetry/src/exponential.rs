//! Conversion of percid's exponential buckets to OpenTelemetry's. Their index is less by one, and
//! their number is limited as the specification requires.

use percid_metrics::histogram::NativeSnapshot;

use crate::data::{Buckets, ExponentialBuckets};

/// Maximum number of buckets of one sign, the specification's default. If more are in use, the
/// scale is reduced: two neighbours become one.
const MAX_BUCKETS: i64 = 160;

pub(crate) fn buckets(read: &NativeSnapshot) -> Buckets {
    let halvings = halvings(&read.positive).max(halvings(&read.negative));
    Buckets::Exponential {
        scale: read.schema - halvings as i32,
        zero_count: read.zero,
        positive: in_a_row(&read.positive, halvings),
        negative: in_a_row(&read.negative, halvings),
    }
}

/// Returns the index of OpenTelemetry's bucket with which one of percid's is merged.
fn index(percid: i32, halvings: u32) -> i32 {
    (percid - 1) >> halvings
}

/// Returns the number of times that neighbours must be merged until at most [`MAX_BUCKETS`] remain.
/// The buckets are in ascending order.
fn halvings(buckets: &[(i32, u64)]) -> u32 {
    let (Some((first, _)), Some((last, _))) = (buckets.first(), buckets.last()) else { return 0 };
    let width = |halvings| i64::from(index(*last, halvings) - index(*first, halvings)) + 1;
    // After 31 of them every index is 0 or -1.
    (0..).find(|&halvings| width(halvings) <= MAX_BUCKETS).unwrap_or_default()
}

fn in_a_row(buckets: &[(i32, u64)], halvings: u32) -> ExponentialBuckets {
    let (Some((first, _)), Some((last, _))) = (buckets.first(), buckets.last()) else {
        return ExponentialBuckets::default();
    };
    let offset = index(*first, halvings);
    let mut counts = vec![0; (index(*last, halvings) - offset) as usize + 1];
    for (bucket, count) in buckets {
        counts[(index(*bucket, halvings) - offset) as usize] += count;
    }
    ExponentialBuckets { offset, counts }
}

#[cfg(test)]
mod tests {
    use percid_metrics::Histogram;

    use super::*;

    fn exponential(schema: i32, values: &[f64]) -> (i32, u64, [ExponentialBuckets; 2]) {
        let histogram = Histogram::native(schema).expect("a schema");
        values.iter().for_each(|value| histogram.observe(*value));
        match buckets(&histogram.native_snapshot().expect("it is native")) {
            Buckets::Exponential { scale, zero_count, positive, negative } => {
                (scale, zero_count, [positive, negative])
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns `true` if the value lies in the specification's bucket of index *i*: above base^i
    /// and up to base^(i + 1).
    fn lies_in(value: f64, index: i32, scale: i32) -> bool {
        let limit = |index: i32| (f64::from(index) * f64::from(-scale).exp2()).exp2();
        limit(index) < value && value <= limit(index + 1)
    }

    #[test]
    fn every_value_lies_in_its_bucket_at_every_scale() {
        for (schema, lowest, highest) in
            [(0, -3, 4), (3, -2, 3), (8, 0, 1), (3, -90, 90), (8, -120, 120)]
        {
            let mut random = fastrand::Rng::with_seed(7);
            let value = || {
                let exponent = f64::from(lowest) + random.f64() * f64::from(highest - lowest);
                exponent.exp2()
            };
            let values: Vec<f64> = std::iter::repeat_with(value).take(1000).collect();
            let (scale, zero, [positive, negative]) = exponential(schema, &values);
            assert!(positive.counts.len() <= 160 && scale <= schema, "{schema} {scale}");
            assert_eq!((zero, negative), (0, ExponentialBuckets::default()));
            for (at, count) in positive.counts.iter().enumerate() {
                let index = positive.offset + at as i32;
                let expected = values.iter().filter(|value| lies_in(**value, index, scale)).count();
                assert_eq!(*count as usize, expected, "{schema} {scale} {index}");
            }
        }
    }

    #[test]
    fn scale_is_reduced_no_more_than_needed() {
        let (scale, ..) = exponential(0, &[2f64.powi(-79), 2f64.powi(80)]);
        assert_eq!(scale, 0, "160 buckets");
        let (scale, ..) = exponential(0, &[2f64.powi(-80), 2f64.powi(80)]);
        assert_eq!(scale, -1);
    }

    #[test]
    fn both_signs_have_one_scale() {
        let (scale, zero, [positive, negative]) =
            exponential(0, &[0.0, -1.5, 3.0, 2f64.powi(-100), 2f64.powi(100)]);
        assert_eq!((scale, zero), (-1, 1));
        assert_eq!(positive.counts.iter().sum::<u64>(), 3);
        assert_eq!(negative, ExponentialBuckets { offset: 0, counts: vec![1] });
        let (scale, _, [positive, negative]) =
            exponential(0, &[-2f64.powi(-100), -2f64.powi(100), 3.0]);
        assert_eq!((scale, positive.counts.len()), (-1, 1));
        assert_eq!((negative.counts.len(), negative.counts.iter().sum::<u64>()), (101, 2));
    }
}
