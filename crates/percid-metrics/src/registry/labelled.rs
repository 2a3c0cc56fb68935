//! A registered metric, by the values of its labels.

use std::fmt;
use std::marker::PhantomData;

use super::error::LabelError;
use super::metric::{Any, Metric};
use super::series::Series;
use super::values::LabelValues;

/// The series of a metric in a [`Registry`](crate::Registry), found by the values of its labels.
/// Clones are the same.
///
/// ```
/// use percid_metrics::{Counter, Description, Registry};
///
/// let registry = Registry::new();
/// let description = Description::new("requests").labels(["method", "status"]);
/// let requests = registry.register::<Counter>(description)?;
/// requests.get(["GET", "200"])?.inc();
/// assert_eq!(requests.get(["GET", "200"])?.get(), 1);
/// assert!(requests.get(["GET"]).is_err(), "there are two labels");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Contract
///
/// * **Cost**: values that this CPU has used before are found in memory of this CPU, as in a
///   [`Family`](crate::Family). This costs their hash, a [`percid::Local`], and a comparison,
///   without an allocation. A caller may keep the result of [`get`](Labelled::get) and avoid this
///   cost.
/// * **Memory**: series exist for as long as this or the registry. Their maximum number is the
///   [limit](crate::Description::limit) plus one.
/// * **Threads, signals, fork**: like [`Family`](crate::Family).
pub struct Labelled<M: Metric> {
    series: Series,
    /// Marks the type of all metrics.
    metrics: PhantomData<fn() -> M>,
}

impl<M: Metric> Labelled<M> {
    /// Wraps the series of a description of this type.
    pub(super) fn new(series: Series) -> Labelled<M> {
        Labelled { series, metrics: PhantomData }
    }

    /// Returns the series with these values, in the order of the labels' names. Creates one of
    /// value 0 if there is none. Beyond the [limit](crate::Description::limit), returns the series
    /// of all others.
    ///
    /// # Errors
    ///
    /// If the numbers of values and names differ, a value is not UTF-8, or there is no memory for a
    /// new series.
    #[inline]
    pub fn get<V: AsRef<[u8]>>(
        &self,
        values: impl IntoIterator<Item = V, IntoIter: Clone>,
    ) -> Result<&M, LabelError> {
        let values = values.into_iter();
        match self.series.seen(values.clone()) {
            Some(found) => Ok(typed(found)),
            None => self.first_seen(values),
        }
    }

    /// Returns the series with these values, if this CPU has used it before. Searches only this
    /// CPU's table, allocates nothing and takes no lock.
    #[inline]
    pub fn seen<V: AsRef<[u8]>>(
        &self,
        values: impl IntoIterator<Item = V, IntoIter: Clone>,
    ) -> Option<&M> {
        self.series.seen(values.into_iter()).map(typed)
    }

    #[cold]
    #[inline(never)]
    fn first_seen<V: AsRef<[u8]>>(
        &self,
        values: impl Iterator<Item = V> + Clone,
    ) -> Result<&M, LabelError> {
        let values = LabelValues::new(values, self.series.described().labels.len())?;
        self.series.first_seen(values).map(typed)
    }

    /// Returns the number of series.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Returns `true` if there are no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of lookups of values beyond the limit.
    pub fn refused(&self) -> u64 {
        self.series.refused()
    }
}

#[inline(always)]
fn typed<M: Metric>(any: &Any) -> &M {
    match M::downcast(any) {
        Some(metric) => metric,
        None => unreachable!("all series of a description are of its type"),
    }
}

impl<M: Metric> Clone for Labelled<M> {
    fn clone(&self) -> Self {
        Labelled { series: self.series.clone(), metrics: PhantomData }
    }
}

impl<M: Metric> fmt::Debug for Labelled<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.series.described().name;
        f.debug_struct("Labelled").field("name", name).field("len", &self.len()).finish()
    }
}
