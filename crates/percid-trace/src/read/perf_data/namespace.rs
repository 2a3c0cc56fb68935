//! Threads as a PID namespace numbers them.
//!
//! If perf runs in its own namespace, as in a container, the kernel's tracepoints have the thread
//! numbers of the whole system. All other data that perf writes has those of the namespace. Every
//! sample has both: its own thread, and the `common_pid` of the tracepoint. The numbers of the
//! whole system are more frequent, so they are used.

use std::collections::HashMap;

use super::container::{Container, Record};
use super::index::IndexEntry;
use super::layouts::Layouts;
use crate::error::Error;
use crate::event::{IDLE, Tid, UNKNOWN};
use crate::formats::Formats;
use tracepoint_decode::PerfEventHeaderType as Type;

/// The numbers of threads in the whole system, by those in the namespace.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    /// `None` if both are the same.
    numbers: Option<HashMap<Tid, Tid>>,
    /// Number of lookups of numbers that are not known.
    pub(super) unknown: u64,
}

/// Number of samples after which it is known whether there is a namespace.
const TRIED: usize = 1000;

impl Namespace {
    pub(super) fn detect(
        container: &Container<'_>,
        layouts: &Layouts,
        formats: &Formats,
        entries: &[IndexEntry],
    ) -> Result<Namespace, Error> {
        let order = container.order;
        let (mut numbers, mut seen, mut same) = (HashMap::new(), 0, 0);
        for entry in entries {
            let Record { kind, body, .. } = container.records.get(entry.at, order)?;
            if kind != Type::Sample {
                continue;
            }
            let sample = layouts.of_sample(body).sample(body.rest(), order);
            let Some((inside, raw)) = sample.and_then(|it| it.tid.zip(it.raw)) else { continue };
            let Some(outside) = formats.current(raw) else { continue };
            // Threads outside of the namespace have none of its numbers.
            if [IDLE, UNKNOWN].contains(&inside) || outside == IDLE {
                continue;
            }
            seen += 1;
            same += usize::from(inside == outside);
            numbers.insert(inside, outside);
            if seen == TRIED && 2 * same > seen {
                return Ok(Namespace::default());
            }
        }
        // A thread that ends or replaces its program may have another number for a moment.
        let is_one = seen > 0 && 2 * same <= seen;
        Ok(Namespace { numbers: is_one.then_some(numbers), unknown: 0 })
    }

    pub(super) fn is_one(&self) -> bool {
        self.numbers.is_some()
    }

    /// The number of a thread in the whole system, if it is known.
    pub(super) fn find(&self, inside: Tid) -> Option<Tid> {
        match &self.numbers {
            Some(numbers) => numbers.get(&inside).copied(),
            None => Some(inside),
        }
    }

    /// Returns the outer number of a thread with an event. Counts the threads that are not known.
    pub(super) fn outside(&mut self, inside: Tid) -> Option<Tid> {
        let found = self.find(inside);
        self.unknown += u64::from(found.is_none() && inside != IDLE);
        found
    }
}
