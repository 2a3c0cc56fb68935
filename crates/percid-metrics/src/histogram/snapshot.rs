//! The values of a classic histogram.

/// The values of a classic histogram at one time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The upper limit of each bucket and its number of values. The last limit is infinity.
    pub buckets: Vec<(f64, u64)>,
}

impl Snapshot {
    /// Returns the upper limit of each bucket and the number of values up to it, as `le` counts.
    pub fn cumulative(&self) -> Vec<(f64, u64)> {
        let mut below = 0;
        let add = |&(limit, count): &(f64, u64)| {
            below += count;
            (limit, below)
        };
        self.buckets.iter().map(add).collect()
    }
}
