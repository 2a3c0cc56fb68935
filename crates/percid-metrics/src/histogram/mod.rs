//! Histograms, with the buckets of Prometheus' classic form or of its native one.

mod classic;
mod native;
mod snapshot;

use std::fmt;
use std::sync::Arc;

use classic::Classic;
pub use classic::Limits;
use native::Native;
pub use native::{BadSchema, NativeSnapshot};
pub use snapshot::Snapshot;

/// A histogram of floats with its exact sum. Clones are the same histogram.
///
/// ```
/// use percid_metrics::Histogram;
///
/// let seconds = Histogram::new([0.01, 0.1, 1.0]);
/// [0.002, 0.01, 0.5, 20.0].into_iter().for_each(|value| seconds.observe(value));
/// let snapshot = seconds.snapshot();
/// assert_eq!((snapshot.count, snapshot.sum), (4, 20.512));
/// assert_eq!(snapshot.cumulative(), [(0.01, 2), (0.1, 2), (1.0, 3), (f64::INFINITY, 4)]);
/// ```
///
/// # Contract
///
/// * **Buckets**: each has an upper limit that belongs to it, as `le` defines. NaN belongs to the
///   last bucket and makes the sum NaN, as the formats require.
/// * **Threads, signals**: [`observe`](Histogram::observe) is async-signal-safe, except for the
///   first value of an octave of a native histogram, which allocates. Count and sum change in one
///   step.
/// * **Cost**: that of [`percid::Buckets::record`], plus the search for the bucket.
/// * **Memory**: the classic form takes the memory of [`percid::Buckets`]. The native form takes
///   272 bytes, 256 for every 16 octaves with values, and 128 for every octave and ID.
/// * **Without memory**, values are only counted by [`unrecorded`](Histogram::unrecorded).
#[derive(Clone)]
pub struct Histogram {
    shape: Arc<Shape>,
}

enum Shape {
    Classic(Classic),
    Native(Box<Native>),
}

/// The default limits of Prometheus' clients, in seconds.
pub const DEFAULT_LIMITS: [f64; 11] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The default resolution of native histograms: 8 buckets between two powers of two, each 9.05 %
/// wider than the one before.
pub const DEFAULT_SCHEMA: i32 = 3;

impl Histogram {
    /// Creates a histogram with these upper limits (see [`Limits::new`]), and infinity after the
    /// last.
    pub fn new(limits: impl IntoIterator<Item = f64>) -> Histogram {
        Histogram::with_limits(&Limits::new(limits))
    }

    /// Creates a histogram with limits that it shares with others.
    pub fn with_limits(limits: &Limits) -> Histogram {
        Histogram { shape: Arc::new(Shape::Classic(Classic::new(limits))) }
    }

    /// Creates a histogram with Prometheus' native (exponential) buckets: 2^`schema` of them
    /// between two powers of two, for a `schema` from 0 to 8. OpenTelemetry's scales are the same.
    ///
    /// Values from -2^-128 to 2^-128 belong to the zero bucket, values beyond 2^128 to the last
    /// one.
    ///
    /// ```
    /// use percid_metrics::Histogram;
    ///
    /// let seconds = Histogram::native(0)?;
    /// [1.5, 2.0, 2.5, 0.0].into_iter().for_each(|value| seconds.observe(value));
    /// let native = seconds.native_snapshot().expect("it is native");
    /// assert_eq!((native.count, native.sum, native.zero), (4, 6.0, 1));
    /// // From 1 to 2, and from 2 to 4.
    /// assert_eq!(native.positive, [(1, 2), (2, 1)]);
    /// # Ok::<(), percid_metrics::histogram::BadSchema>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BadSchema`] if `schema` is not from 0 to 8.
    pub fn native(schema: i32) -> Result<Histogram, BadSchema> {
        Ok(Histogram { shape: Arc::new(Shape::Native(Box::new(Native::new(schema)?))) })
    }

    /// Counts a value.
    #[inline]
    pub fn observe(&self, value: f64) {
        match &*self.shape {
            Shape::Classic(classic) => classic.record(value, 1),
            Shape::Native(native) => native.record(value, 1),
        }
    }

    /// Counts a value `times` times, in one step.
    #[inline]
    pub fn observe_many(&self, value: f64, times: u64) {
        match &*self.shape {
            Shape::Classic(classic) => classic.record(value, times),
            Shape::Native(native) => native.record(value, times),
        }
    }

    /// Counts `counts[n]` values in each bucket `n`, in the order of the limits, and adds `sum`, the
    /// sum of all of them, in one step: see [`percid::Buckets::record_all`]. Returns `false` without
    /// effect if the histogram is native.
    ///
    /// ```
    /// let seconds = percid_metrics::Histogram::new([0.1, 1.0]);
    /// assert!(seconds.observe_all(&[3, 0, 1], 5.25));
    /// assert_eq!((seconds.count(), seconds.snapshot().sum), (4, 5.25));
    /// ```
    pub fn observe_all(&self, counts: &[u64], sum: f64) -> bool {
        match &*self.shape {
            Shape::Classic(classic) => classic.record_all(counts, sum),
            Shape::Native(_) => return false,
        }
        true
    }

    /// Takes all values out, and leaves an empty histogram: see [`percid::Buckets::take`]. `None`
    /// without effect if the histogram is native.
    ///
    /// On a page, the histogram then begins again at 0, as after a restart of the program.
    ///
    /// ```
    /// let seconds = percid_metrics::Histogram::new([0.1, 1.0]);
    /// seconds.observe(0.5);
    /// let taken = seconds.take().expect("it has limits");
    /// assert_eq!((taken.count, taken.sum, seconds.count()), (1, 0.5, 0));
    /// ```
    pub fn take(&self) -> Option<Snapshot> {
        match &*self.shape {
            Shape::Classic(classic) => Some(classic.take()),
            Shape::Native(_) => None,
        }
    }

    /// Returns the current values, in buckets with upper limits. For a native histogram, these are
    /// the buckets that have values.
    pub fn snapshot(&self) -> Snapshot {
        match &*self.shape {
            Shape::Classic(classic) => classic.snapshot(),
            Shape::Native(native) => native.snapshot().classic(),
        }
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        match &*self.shape {
            Shape::Classic(classic) => classic.snapshot().count,
            Shape::Native(native) => native.snapshot().count,
        }
    }

    /// Returns `true` if the histogram has native buckets.
    pub fn is_native(&self) -> bool {
        matches!(&*self.shape, Shape::Native(_))
    }

    /// Returns the current values, if the histogram is native.
    pub fn native_snapshot(&self) -> Option<NativeSnapshot> {
        match &*self.shape {
            Shape::Classic(_) => None,
            Shape::Native(native) => Some(native.snapshot()),
        }
    }

    /// Returns the number of values that could not be counted because there was no memory.
    pub fn unrecorded(&self) -> u64 {
        match &*self.shape {
            Shape::Classic(classic) => classic.unrecorded(),
            Shape::Native(native) => native.unrecorded(),
        }
    }
}

impl Default for Histogram {
    /// Creates a histogram with [`DEFAULT_LIMITS`].
    fn default() -> Self {
        Histogram::new(DEFAULT_LIMITS)
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Histogram").field(&self.snapshot()).finish()
    }
}
