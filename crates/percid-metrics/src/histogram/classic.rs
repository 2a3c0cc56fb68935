//! Buckets with limits that the program chooses.

use std::sync::Arc;

use percid::Buckets;

use super::snapshot::Snapshot;

/// Maximum number of limits that are all compared with a value. Without a branch on the value, no
/// branch is mispredicted.
const FEW: usize = 24;

/// Upper limits of buckets, which histograms share. Clones are the same limits.
///
/// ```
/// use percid_metrics::Histogram;
/// use percid_metrics::histogram::Limits;
///
/// let limits = Limits::new([0.01, 0.1, 1.0]);
/// let (reads, writes) = (Histogram::with_limits(&limits), Histogram::with_limits(&limits));
/// reads.observe(0.05);
/// assert_eq!((reads.count(), writes.count()), (1, 0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// In ascending order. The last bucket contains the values above all of them.
    ascending: Arc<[f64]>,
}

impl Limits {
    /// Creates limits in ascending order from those of `limits`. Equal, infinite and NaN limits are
    /// left out. If there are more than 2047, the largest are left out.
    pub fn new(limits: impl IntoIterator<Item = f64>) -> Limits {
        let mut limits: Vec<f64> = limits.into_iter().filter(|limit| limit.is_finite()).collect();
        limits.sort_by(f64::total_cmp);
        limits.dedup();
        limits.truncate(Buckets::MAX - 1);
        Limits { ascending: limits.into() }
    }
}

#[derive(Debug)]
pub(super) struct Classic {
    limits: Arc<[f64]>,
    buckets: Buckets,
}

impl Classic {
    pub(super) fn new(limits: &Limits) -> Classic {
        let limits = Arc::clone(&limits.ascending);
        let buckets = Buckets::new(limits.len() + 1);
        Classic { limits, buckets }
    }

    #[inline]
    pub(super) fn record(&self, value: f64, times: u64) {
        self.buckets.record_many(self.bucket(value), times, value * times as f64);
    }

    pub(super) fn record_all(&self, counts: &[u64], sum: f64) {
        self.buckets.record_all(counts, sum);
    }

    #[inline]
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "what is no number is above every limit")]
    fn bucket(&self, value: f64) -> usize {
        let is_above = |limit: &f64| !(value <= *limit);
        // #[gamma::skip(cond, relational, reason = "both ways find the same bucket")]
        if self.limits.len() <= FEW {
            return self.limits.iter().map(|limit| usize::from(is_above(limit))).sum();
        }
        self.limits.partition_point(is_above)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.snapshot_by(Buckets::read)
    }

    pub(super) fn take(&self) -> Snapshot {
        self.snapshot_by(Buckets::take)
    }

    fn snapshot_by(&self, read: impl FnOnce(&Buckets, &mut [u64]) -> f64) -> Snapshot {
        let mut counts = vec![0; self.buckets.len()];
        let sum = read(&self.buckets, &mut counts);
        let limits = self.limits.iter().copied().chain([f64::INFINITY]);
        let count = counts.iter().sum();
        Snapshot { count, sum, buckets: limits.zip(counts).collect() }
    }

    pub(super) fn unrecorded(&self) -> u64 {
        self.buckets.unrecorded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(classic: &Classic) -> Vec<u64> {
        classic.snapshot().buckets.iter().map(|(_, count)| *count).collect()
    }

    #[test]
    fn a_limit_belongs_to_its_bucket() {
        let classic = Classic::new(&Limits::new([2.0, 1.0, 1.0, f64::NAN, f64::INFINITY]));
        let limits: Vec<f64> = classic.snapshot().buckets.iter().map(|(limit, _)| *limit).collect();
        assert_eq!(limits, [1.0, 2.0, f64::INFINITY]);
        for value in [f64::NEG_INFINITY, 1.0, 1.0000000000000002, 2.0, 2.5, f64::INFINITY] {
            classic.record(value, 1);
        }
        assert_eq!(counts(&classic), [2, 2, 2]);
        classic.record(f64::NAN, 3);
        assert_eq!(counts(&classic), [2, 2, 5]);
        assert!(classic.snapshot().sum.is_nan());
    }

    #[test]
    fn many_limits_are_found_as_few_are() {
        for limits in [1, 5, FEW, FEW + 1, 300] {
            let classic = Classic::new(&Limits::new((0..limits).map(|limit| limit as f64)));
            for value in 0..2 * limits {
                for value in [value as f64, value as f64 - 0.5] {
                    let expected = (0..limits).filter(|&limit| (limit as f64) < value).count();
                    assert_eq!(classic.bucket(value), expected, "{limits} {value}");
                }
            }
            assert_eq!(classic.bucket(f64::NAN), limits);
        }
    }

    #[test]
    fn without_limits_there_is_one_bucket() {
        let classic = Classic::new(&Limits::new([]));
        classic.record(-7.0, 2);
        assert_eq!((counts(&classic), classic.snapshot().sum), (vec![2], -14.0));
    }

    #[test]
    fn of_too_many_limits_the_smallest_are_kept() {
        let classic = Classic::new(&Limits::new((0..5000).map(f64::from)));
        assert_eq!(classic.snapshot().buckets.len(), Buckets::MAX);
    }
}
