//! The two values that describe repeated measurements.

/// Measurements of one quantity, one per round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the smallest sample, unless there is none.
    pub(crate) fn min(&self) -> Option<f64> {
        self.0.iter().copied().reduce(f64::min)
    }

    /// Returns the middle sample, or the mean of the two in the middle.
    pub(crate) fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        Some(if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + upper) / 2.0
        } else {
            upper
        })
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        Samples(samples.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_known_samples() {
        let samples: Samples = [4.0, 1.0, 3.0, 8.0].into_iter().collect();
        assert_eq!(
            (samples.min(), samples.median(), samples.mean()),
            (Some(1.0), Some(3.5), Some(4.0))
        );
        let odd: Samples = [9.0, 1.0, 2.0].into_iter().collect();
        assert_eq!(odd.median(), Some(2.0));
        let none = Samples::default();
        assert_eq!((none.min(), none.median(), none.mean()), (None, None, None));
    }
}
