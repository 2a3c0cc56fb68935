//! Exponential buckets: Prometheus' native histograms and OpenTelemetry's exponential ones.
//!
//! With schema *s* the limits are 2^(i / 2^s) for every integer *i*. Bucket *i* has the values
//! above the limit *i* - 1 and up to the limit *i*. So an octave, the values above a power of two
//! and up to the next one, has 2^s buckets. The memory of an octave is allocated with the first
//! value in its group of 16.
//!
//! The limits within an octave are computed once, with an error of at most one unit in the last
//! place; powers of two are exact. Source: the Prometheus documentation, *Native histograms*, and
//! the OpenTelemetry specification, *Exponential histogram*.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use percid::Buckets;

use super::snapshot::Snapshot;

/// The largest schema.
const FINEST: i32 = 8;
/// The octaves from 2^-128 to 2^128.
const LOWEST: i32 = -128;
const OCTAVES: usize = 256;
/// Number of octaves that are allocated together.
const GROUP: usize = 16;

/// Indexes in `small`: the zero bucket, and values without a bucket (NaN).
const ZERO: usize = 0;
const NOWHERE: usize = 1;

/// A schema that is not from 0 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadSchema(i32);

impl fmt::Display for BadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema {} is not from 0 to {FINEST}", self.0)
    }
}

impl std::error::Error for BadSchema {}

pub(super) struct Native {
    scale: &'static Scale,
    small: Buckets,
    positive: Side,
    negative: OnceLock<Box<Side>>,
}

/// The values of one sign.
#[derive(Default)]
struct Side {
    groups: [OnceLock<Arc<[Buckets]>>; OCTAVES / GROUP],
}

/// The values of a native histogram at one time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NativeSnapshot {
    /// The schema: 2^schema buckets between two powers of two.
    pub schema: i32,
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Number of values from -2^-128 to 2^-128.
    pub zero: u64,
    /// The buckets that have values, in ascending order, with their numbers of values. Bucket *i*
    /// is above 2^((i - 1) / 2^schema) and goes up to 2^(i / 2^schema). (OpenTelemetry's index is
    /// less by one.)
    pub positive: Vec<(i32, u64)>,
    /// The same for negative values, by their absolute values.
    pub negative: Vec<(i32, u64)>,
}

impl NativeSnapshot {
    /// The largest absolute value that belongs to the zero bucket, 2^-128.
    pub const ZERO_THRESHOLD: f64 = f64::from_bits(((1023 + LOWEST) as u64) << FRACTION_BITS);

    /// Returns the upper limit of a bucket.
    pub fn limit(&self, index: i32) -> f64 {
        (f64::from(index) / f64::from(1 << self.schema)).exp2()
    }

    /// Returns the same values in buckets with upper limits, without the empty buckets.
    pub fn classic(&self) -> Snapshot {
        let negative = self.negative.iter().rev();
        let negative = negative.map(|&(index, count)| (-self.limit(index - 1), count));
        let positive = self.positive.iter().map(|&(index, count)| (self.limit(index), count));
        let zero = (self.zero > 0).then_some((Self::ZERO_THRESHOLD, self.zero));
        let mut buckets: Vec<(f64, u64)> = negative.chain(zero).chain(positive).collect();
        let counted: u64 = buckets.iter().map(|(_, count)| count).sum();
        buckets.push((f64::INFINITY, self.count.saturating_sub(counted)));
        Snapshot { count: self.count, sum: self.sum, buckets }
    }

    /// Returns the `q` quantile: the geometric mean of the limits of its bucket. Returns `None` if
    /// there are no values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let middle = |index: i32| {
            let (low, high) = (self.limit(index - 1), self.limit(index));
            (low * high).sqrt()
        };
        let negative = self.negative.iter().rev().map(|&(index, count)| (-middle(index), count));
        let positive = self.positive.iter().map(|&(index, count)| (middle(index), count));
        let mut below = 0;
        let mut all = negative.chain([(0.0, self.zero)]).chain(positive);
        all.find(|(_, count)| {
            below += count;
            below >= rank
        })
        .map(|(value, _)| value)
    }
}

impl Native {
    pub(super) fn new(schema: i32) -> Result<Native, BadSchema> {
        // #[gamma::skip(expr, reason = "there are not so many")]
        let scale = SCALES.get(usize::try_from(schema).unwrap_or(usize::MAX));
        let scale = scale.ok_or(BadSchema(schema))?;
        let (positive, negative) = (Side::default(), OnceLock::new());
        // #[gamma::skip(literal.int_increment, reason = "more room does no harm")]
        Ok(Native { scale, small: Buckets::new(2), positive, negative })
    }

    #[inline]
    pub(super) fn record(&self, value: f64, times: u64) {
        let sum = value * times as f64;
        let Some((octave, bucket)) = self.scale.place(value.abs()) else {
            let place = if value.is_nan() { NOWHERE } else { ZERO };
            return self.small.record_many(place, times, sum);
        };
        let side = if value.is_sign_positive() {
            &self.positive
        } else {
            self.negative.get_or_init(Box::default)
        };
        side.octave(octave, self.scale.buckets()).record_many(bucket, times, sum);
    }

    pub(super) fn snapshot(&self) -> NativeSnapshot {
        // #[gamma::skip(literal.int_increment, reason = "what is read takes its place")]
        let mut small = [0; 2];
        let mut sum = self.small.read(&mut small);
        let (positive, of_positive) = self.positive.read(self.scale);
        let negative = self.negative.get().map(|side| side.read(self.scale));
        let (negative, of_negative) = negative.unwrap_or_default();
        sum += of_positive + of_negative;
        let counted = positive.iter().chain(&negative).map(|(_, count)| count).sum::<u64>();
        let count = counted + small[ZERO] + small[NOWHERE];
        NativeSnapshot {
            schema: self.scale.schema,
            count,
            sum,
            zero: small[ZERO],
            positive,
            negative,
        }
    }

    pub(super) fn unrecorded(&self) -> u64 {
        let sides = [Some(&self.positive), self.negative.get().map(|side| &**side)];
        let octaves = sides.into_iter().flatten().flat_map(Side::octaves);
        self.small.unrecorded() + octaves.map(|(_, buckets)| buckets.unrecorded()).sum::<u64>()
    }
}

impl Side {
    #[inline]
    fn octave(&self, octave: usize, buckets: usize) -> &Buckets {
        // #[gamma::skip(range, expr, reason = "more room does no harm")]
        let new = || (0..GROUP).map(|_| Buckets::new(buckets)).collect();
        &self.groups[octave / GROUP].get_or_init(new)[octave % GROUP]
    }

    /// Returns all allocated octaves, by number.
    fn octaves(&self) -> impl Iterator<Item = (usize, &Buckets)> {
        let groups = self.groups.iter().enumerate();
        groups.filter_map(|(group, room)| Some((group * GROUP, room.get()?))).flat_map(
            |(first, octaves)| {
                octaves.iter().enumerate().map(move |(octave, it)| (first + octave, it))
            },
        )
    }

    /// Returns the buckets with values by their index, and the sum.
    fn read(&self, scale: &Scale) -> (Vec<(i32, u64)>, f64) {
        let mut counts = vec![0; scale.buckets()];
        let (mut all, mut sum) = (Vec::new(), 0.0);
        for (octave, buckets) in self.octaves() {
            sum += buckets.read(&mut counts);
            let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            all.extend(filled.map(|(bucket, &count)| (scale.index(octave, bucket), count)));
        }
        (all, sum)
    }
}

/// The limits of a schema.
struct Scale {
    schema: i32,
    /// The limits inside an octave, as the fraction bits of a float. The last ones are above all
    /// others.
    limits: Box<[u64]>,
    /// Number of limits that are certainly below, indexed by the first `schema` bits of the
    /// fraction.
    below: Box<[u16]>,
}

const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const FRACTION: u64 = (1 << FRACTION_BITS) - 1;

/// Above all limits, and small enough that the difference to a fraction does not change its sign.
const NO_LIMIT: u64 = 1 << 62;

static SCALES: LazyLock<Vec<Scale>> = LazyLock::new(|| (0..=FINEST).map(Scale::new).collect());

impl Scale {
    fn new(schema: i32) -> Scale {
        let buckets = 1usize << schema;
        let limit = |bucket: usize| (bucket as f64 / buckets as f64).exp2().to_bits() & FRACTION;
        let limits: Box<[u64]> = (0..buckets).map(limit).chain([NO_LIMIT; 2]).collect();
        let first = |cell: usize| (cell as u64) << (FRACTION_BITS - schema as u32);
        let below = |cell: usize| limits.partition_point(|&limit| limit < first(cell)) as u16;
        let below = (0..buckets).map(below).collect();
        Scale { schema, limits, below }
    }

    fn buckets(&self) -> usize {
        self.below.len()
    }

    /// Returns the octave of an amount and the bucket in it. Returns `None` if the amount belongs
    /// to the zero bucket or is NaN.
    #[inline]
    #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "what is no number has no bucket")]
    fn place(&self, amount: f64) -> Option<(usize, usize)> {
        if !(amount > NativeSnapshot::ZERO_THRESHOLD) {
            return None;
        }
        let bits = amount.to_bits();
        let (exponent, fraction) = ((bits >> FRACTION_BITS) as i32 - 1023, bits & FRACTION);
        // A cell is at least as wide as a bucket. At the beginning of an octave, limits are at most
        // 1.45 times as dense as cells. So a cell contains at most two limits.
        let cell = (fraction >> (FRACTION_BITS - self.schema as u32)) as usize;
        let mut below = usize::from(self.below[cell]);
        // Add one if the limit is less, by the sign bit: a branch would be mispredicted every other
        // time.
        below += (self.limits[below].wrapping_sub(fraction) >> 63) as usize;
        below += (self.limits[below].wrapping_sub(fraction) >> 63) as usize;
        // The number of limits below the amount, counted from the lowest octave. Subtract one,
        // because the first limit of an octave is the last one of the previous octave.
        let index = ((exponent - LOWEST) as usize) * self.buckets() + below - 1;
        let last = OCTAVES * self.buckets() - 1;
        let index = index.min(last);
        Some((index >> self.schema, index & (self.buckets() - 1)))
    }

    /// Returns the index of a bucket.
    fn index(&self, octave: usize, bucket: usize) -> i32 {
        ((octave as i32 + LOWEST) << self.schema) + bucket as i32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `true` if the amount lies between the limits of the bucket, computed by the
    /// definition.
    fn is_right(scale: &Scale, amount: f64, index: i32) -> bool {
        let buckets = f64::from(1 << scale.schema);
        let limit = |index: i32| (f64::from(index) / buckets).exp2();
        limit(index - 1) < amount && amount <= limit(index)
    }

    #[test]
    fn every_amount_lies_between_the_limits_of_its_bucket() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for scale in SCALES.iter() {
            for _ in 0..50_000 {
                let exponent = random.u64(1023 - 127..1023 + 127);
                let amount = f64::from_bits(exponent << FRACTION_BITS | random.u64(..=FRACTION));
                let (octave, bucket) = scale.place(amount).expect("it has a bucket");
                let index = scale.index(octave, bucket);
                assert!(is_right(scale, amount, index), "{} {amount:e} {index}", scale.schema);
            }
        }
    }

    #[test]
    fn a_limit_belongs_to_the_bucket_below() {
        for scale in SCALES.iter() {
            let buckets = 1 << scale.schema;
            for exponent in [-127, -1, 0, 1, 127] {
                for bucket in 0..buckets {
                    let limit =
                        (f64::from(exponent * buckets + bucket) / f64::from(buckets)).exp2();
                    let index = |amount| scale.place(amount).map(|(o, b)| scale.index(o, b));
                    let expected = exponent * buckets + bucket;
                    assert_eq!(index(limit), Some(expected), "{}", scale.schema);
                    assert_eq!(index(limit.next_up()), Some(expected + 1));
                }
            }
        }
    }

    /// The limits of schema 3 are those of Prometheus' documentation, to the last place but one.
    #[test]
    fn limits_are_the_published_ones() {
        let published = [
            0.5,
            0.5452538663326288,
            0.5946035575013605,
            0.6484197773255048,
            0.7071067811865475,
            0.7711054127039704,
            0.8408964152537144,
            0.9170040432046711,
        ];
        for (bucket, published) in published.into_iter().enumerate() {
            let fraction = SCALES[3].limits[bucket] | 1022 << FRACTION_BITS;
            assert!(fraction.abs_diff(f64::to_bits(published)) <= 1, "{bucket}");
        }
    }

    #[test]
    fn what_has_no_bucket_is_counted_all_the_same() {
        let native = Native::new(3).expect("a schema");
        for value in [0.0, -0.0, 1e-40, -1e-300, f64::NAN, NativeSnapshot::ZERO_THRESHOLD] {
            native.record(value, 1);
        }
        let snapshot = native.snapshot();
        assert_eq!((snapshot.count, snapshot.zero), (6, 5));
        assert!(snapshot.sum.is_nan() && snapshot.positive.is_empty());
        assert_eq!(snapshot.classic().buckets, [(2f64.powi(-128), 5), (f64::INFINITY, 1)]);
        native.record(NativeSnapshot::ZERO_THRESHOLD.next_up(), 1);
        assert_eq!(native.snapshot().positive, [(-128 * 8 + 1, 1)]);
    }

    #[test]
    fn the_largest_and_the_smallest_have_the_outermost_buckets() {
        let native = Native::new(2).expect("a schema");
        for value in [f64::MAX, f64::INFINITY, f64::MIN, f64::NEG_INFINITY, 2f64.powi(128)] {
            native.record(value, 1);
        }
        let snapshot = native.snapshot();
        assert_eq!((snapshot.positive, snapshot.negative), (vec![(512, 3)], vec![(512, 2)]));
    }

    #[test]
    fn negative_values_come_first() {
        let native = Native::new(0).expect("a schema");
        [-3.0, -1.5, 0.0, 1.5, 5.0].into_iter().for_each(|value| native.record(value, 1));
        let snapshot = native.snapshot();
        let limits: Vec<f64> = snapshot.classic().buckets.iter().map(|(limit, _)| *limit).collect();
        assert_eq!(limits, [-2.0, -1.0, 2f64.powi(-128), 2.0, 8.0, f64::INFINITY]);
        let quantiles = [0.0, 0.5, 1.0].map(|q| snapshot.quantile(q).expect("values"));
        assert_eq!(quantiles, [-(8f64.sqrt()), 0.0, 32f64.sqrt()]);
        let native = Native::new(0).expect("a schema");
        assert_eq!(native.snapshot().quantile(0.5), None);
        native.record(3.0, 2);
        assert_eq!(native.snapshot().classic().buckets, [(4.0, 2), (f64::INFINITY, 0)]);
        for q in [-1.0, 0.0, 0.5, 1.0, 2.0] {
            assert_eq!(native.snapshot().quantile(q), Some(8f64.sqrt()), "{q}");
        }
    }

    #[test]
    fn other_schemas_are_refused() {
        for schema in [-1, 9, i32::MIN, i32::MAX] {
            assert_eq!(Native::new(schema).err(), Some(BadSchema(schema)));
        }
    }
}
