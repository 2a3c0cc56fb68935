//! A registered metric, by the values of its labels.

use std::fmt;
use std::marker::PhantomData;

use super::error::LabelError;
use super::metric::{Any, Metric};
use super::series::Series;
use super::values::LabelValues;

/// The series of a metric in a [`Registry`](crate::Registry), found by the values of its labels. Clones are
/// the same.
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
/// * **Cost**: values that this CPU has seen before are found in memory of this CPU, as of a
///   [`Family`](crate::Family): their hash, a [`percid::Local`], and a comparison, without an allocation.
///   What [`get`](Labelled::get) returns can be kept, and costs nothing then.
/// * **Memory**: series stay for as long as this or the registry does. There are as many as the
///   [limit](crate::Description::limit) says, and one more.
/// * **Threads, signals, fork**: as [`Family`](crate::Family).
pub struct Labelled<M: Metric> {
    series: Series,
    /// All of this type.
    metrics: PhantomData<fn() -> M>,
}

impl<M: Metric> Labelled<M> {
    /// The series of a description of this type.
    pub(super) fn new(series: Series) -> Labelled<M> {
        Labelled { series, metrics: PhantomData }
    }

    /// The series with these values, in the order of the labels' names; a new one of value 0, if there is
    /// none. Beyond the [limit](crate::Description::limit) it is the series of all others.
    ///
    /// # Errors
    ///
    /// There are not as many values as names, one is not UTF-8, or there is no memory for a new series.
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

    /// The series with these values, if this CPU has seen it before. Nothing is looked up elsewhere or
    /// allocated, and no lock is taken.
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

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often values were looked up that were beyond the limit.
    pub fn refused(&self) -> u64 {
        self.series.refused()
    }
}

#[inline(always)]
fn typed<M: Metric>(any: &Any) -> &M {
    match M::of(any) {
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
