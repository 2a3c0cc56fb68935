//! A registered metric, by the values of its labels.

use std::fmt;
use std::sync::Arc;

use super::description::Described;
use super::error::LabelError;
use super::metric::{Metric, Sample};
use super::values::{LabelValues, Sought};
use crate::family::{Entry, Family, NewMetric, NoMemory};

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
///   [`Family`]: their hash, a [`percid::Local`], and a comparison, without an allocation. What
///   [`get`](Labelled::get) returns can be kept, and costs nothing then.
/// * **Memory**: series stay for as long as this or the registry does. There are as many as the
///   [limit](crate::Description::limit) says, and one more.
/// * **Threads, signals, fork**: as [`Family`].
pub struct Labelled<M: Metric> {
    family: Family<LabelValues, M, Constructor>,
    described: Arc<Described>,
}

/// Makes the metrics of a description.
struct Constructor(Arc<Described>);

impl<M: Sample> NewMetric<M> for Constructor {
    fn new_metric(&self) -> M {
        M::new(&self.0)
    }
}

impl<M: Metric> Labelled<M> {
    /// Without a series; or with its only one, if there are no labels.
    pub(super) fn new(described: Described) -> Result<Labelled<M>, LabelError> {
        let described = Arc::new(described);
        let beyond = LabelValues::repeated(&described.overflow, described.labels.len());
        let constructor = Constructor(Arc::clone(&described));
        // Without labels there is one series, which is not beyond anything.
        let most = if described.labels.is_empty() { 1 } else { described.most };
        let family = Family::with_limit(constructor, most, beyond);
        let labelled = Labelled { family, described };
        if labelled.described.labels.is_empty() {
            labelled.get(NONE)?;
        }
        Ok(labelled)
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
        match self.seen(values.clone()) {
            Some(found) => Ok(found),
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
        let values = values.into_iter();
        let hash = self.family.hash_of(&Sought(values.clone()));
        let expected = self.described.labels.len();
        let found = self.family.seen(hash, |there| there.are(values, expected))?;
        // SAFETY: a family keeps its metrics where they are until they are taken out, which nothing here
        // does, and `self` keeps the family.
        Some(unsafe { found.as_ref() })
    }

    #[cold]
    #[inline(never)]
    fn first_seen<V: AsRef<[u8]>>(
        &self,
        values: impl Iterator<Item = V> + Clone,
    ) -> Result<&M, LabelError> {
        let values = LabelValues::new(values, self.described.labels.len())?;
        let found = self.family.first_seen(self.family.hash_of(&values), &values)?;
        // SAFETY: as in `seen`.
        Ok(unsafe { found.as_ref() })
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.family.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often values were looked up that were beyond the limit.
    pub fn refused(&self) -> u64 {
        self.family.refused()
    }

    /// All series, by their values.
    pub(super) fn sorted(&self) -> Result<Vec<Arc<Entry<LabelValues, M>>>, NoMemory> {
        let mut all = self.family.all()?;
        all.sort_unstable_by(|one, other| one.labels().cmp(other.labels()));
        Ok(all)
    }

    pub(super) fn described(&self) -> &Arc<Described> {
        &self.described
    }
}

/// No values.
const NONE: [&str; 0] = [];

impl<M: Metric> Clone for Labelled<M> {
    fn clone(&self) -> Self {
        Labelled { family: self.family.clone(), described: Arc::clone(&self.described) }
    }
}

impl<M: Metric> fmt::Debug for Labelled<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.described.name;
        f.debug_struct("Labelled").field("name", name).field("len", &self.len()).finish()
    }
}
