//! The counts: percid's structures, one set for all threads.

use std::collections::HashMap;

use percid::histogram::Snapshot;
use percid::{Counter, Histogram, Local};

use crate::record::{Method, Record, Status};

/// Number of requests by path.
pub(crate) type Hits = HashMap<Box<[u8]>, u64>;

/// The figures of a log. Its constructor is constant, so it may be a `static`.
#[derive(Debug)]
pub(crate) struct Aggregate {
    by_status: [Counter; Status::NAMES.len()],
    by_method: [Counter; Method::NAMES.len()],
    malformed: Counter,
    bytes: Counter,
    sizes: Histogram,
    hits: Local<Hits>,
}

impl Aggregate {
    pub(crate) const fn new() -> Aggregate {
        Aggregate {
            by_status: [const { Counter::new() }; Status::NAMES.len()],
            by_method: [const { Counter::new() }; Method::NAMES.len()],
            malformed: Counter::new(),
            bytes: Counter::new(),
            sizes: Histogram::new(),
            hits: Local::new(HashMap::new),
        }
    }

    /// Counts a request.
    pub(crate) fn add(&self, record: &Record<'_>) {
        self.by_status[record.status.0 as usize].add(1);
        self.by_method[record.method as usize].add(1);
        self.bytes.add(record.bytes as i64);
        self.sizes.record(record.bytes);
        if let Some(path) = record.path {
            self.hits.with(|hits| hit(hits, path));
        }
    }

    /// Counts a line that is no request.
    pub(crate) fn add_malformed(&self) {
        self.malformed.add(1);
    }

    pub(crate) fn malformed(&self) -> i64 {
        self.malformed.sum()
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.bytes.sum()
    }

    pub(crate) fn sizes(&self) -> Snapshot {
        self.sizes.snapshot()
    }

    /// Requests by class of status, in the order of [`Status::NAMES`].
    pub(crate) fn by_status(&self) -> [i64; Status::NAMES.len()] {
        self.by_status.each_ref().map(Counter::sum)
    }

    /// Requests by method, in the order of [`Method::NAMES`].
    pub(crate) fn by_method(&self) -> [i64; Method::NAMES.len()] {
        self.by_method.each_ref().map(Counter::sum)
    }

    /// Returns the hits of all CPUs.
    pub(crate) fn hits(&self) -> Hits {
        let mut all = Hits::new();
        self.hits.for_each(|hits| {
            for (path, count) in hits {
                *all.entry(path.clone()).or_default() += *count;
            }
        });
        all
    }
}

/// Allocates for a path that is new only.
fn hit(hits: &mut Hits, path: &[u8]) {
    match hits.get_mut(path) {
        Some(count) => *count += 1,
        None => _ = hits.insert(path.into(), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_added_up_over_all_values() {
        let requests = Aggregate::new();
        let (method, path, status) = (Method::Get, Some(&b"/"[..]), Status(2));
        let record = Record { method, path, status, bytes: 10 };
        requests.add(&record);
        // While one value is in use, another one counts.
        requests.hits.with(|_| requests.add(&record));
        assert_eq!(requests.hits(), Hits::from([(b"/"[..].into(), 2)]));
        assert_eq!(
            (requests.bytes(), requests.by_status()[2], requests.sizes().count()),
            (20, 2, 2)
        );
    }
}
