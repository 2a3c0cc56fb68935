//! The series of a registered metric of any type.

use std::sync::Arc;

use super::description::Described;
use super::error::LabelError;
use super::metric::Any;
use super::values::{LabelValues, Sought};
use crate::entries::{MetricEntry, NoMemory};
use crate::family::{Family, NewMetric};

/// Series by the values of their labels. Clones are the same.
#[derive(Clone)]
pub(super) struct Series {
    family: Family<LabelValues, Any, Constructor>,
    described: Arc<Described>,
}

/// Creates the metrics of a description.
struct Constructor {
    new: fn(&Described) -> Any,
    described: Arc<Described>,
}

impl NewMetric<Any> for Constructor {
    fn new_metric(&self) -> Any {
        (self.new)(&self.described)
    }
}

impl Series {
    /// Creates the series of a metric: none yet, or the only one if there are no labels.
    pub(super) fn new(
        described: Described,
        new: fn(&Described) -> Any,
    ) -> Result<Series, LabelError> {
        let described = Arc::new(described);
        let beyond = LabelValues::repeated(&described.overflow, described.labels.len());
        let constructor = Constructor { new, described: Arc::clone(&described) };
        // Without labels there is one series, which is never beyond the limit.
        let most = if described.labels.is_empty() { 1 } else { described.most };
        let family = Family::with_name_and_limit(&described.name, constructor, most, beyond);
        let series = Series { family, described };
        if series.described.labels.is_empty() {
            series.first_seen(LabelValues::repeated("", 0))?;
        }
        Ok(series)
    }

    /// Returns the series with these values, if this CPU has used it before.
    #[inline]
    pub(super) fn seen<V: AsRef<[u8]>>(
        &self,
        values: impl Iterator<Item = V> + Clone,
    ) -> Option<&Any> {
        let hash = self.family.hash_of(&Sought(values.clone()));
        let expected = self.described.labels.len();
        let found = self.family.seen(hash, |there| there.are(values, expected))?;
        // SAFETY: a metric's address is valid until it is removed from its family. Nothing in this
        // type removes metrics, and the result borrows `self`, which holds the family.
        Some(unsafe { found.as_ref() })
    }

    /// Returns the series with these values, if this CPU has not used it before.
    #[cold]
    #[inline(never)]
    pub(super) fn first_seen(&self, values: LabelValues) -> Result<&Any, LabelError> {
        let found = self.family.first_seen(self.family.hash_of(&values), &values)?;
        // SAFETY: a metric's address is valid until it is removed from its family. Nothing in this
        // type removes metrics, and the result borrows `self`, which holds the family.
        Ok(unsafe { found.as_ref() })
    }

    pub(super) fn len(&self) -> usize {
        self.family.len()
    }

    pub(super) fn refused(&self) -> u64 {
        self.family.refused()
    }

    /// Returns all series, sorted by their values.
    pub(super) fn sorted(&self) -> Result<Vec<Arc<MetricEntry<LabelValues, Any>>>, NoMemory> {
        let mut all = self.family.all()?;
        all.sort_unstable_by(|one, other| one.labels.cmp(&other.labels));
        Ok(all)
    }

    pub(super) fn described(&self) -> &Described {
        &self.described
    }
}
