//! The measured operations: one file per family, each loop in the form of [`form`].

mod alloc;
mod counters;
mod form;
mod histograms;
mod lists;
mod locks;
mod masks;
mod operation;
mod pools;
mod rings;
mod sync;

#[cfg(feature = "counter-peers")]
mod counter_peers;
#[cfg(feature = "metrics-peers")]
mod metrics;

use percid::Source;

#[cfg(feature = "peers")]
pub(crate) use alloc::Mimalloc;
pub(crate) use alloc::operations as alloc_operations;
pub(crate) use masks::operations as mask_operations;
#[cfg(feature = "metrics-peers")]
pub(crate) use metrics::operations as metrics_operations;
#[cfg(test)]
pub(crate) use operation::Account;
pub(crate) use operation::{Family, Measured, Operation};
pub(crate) use sync::operations as sync_operations;

/// Returns all operations of `percid bench ops` except `plain_add`, for teams of up to `workers`
/// threads.
pub(crate) fn operations(workers: usize) -> Vec<Operation> {
    counters::operations(workers)
        .chain(lists::operations())
        .chain(pools::operations())
        .chain(locks::operations(workers))
        .chain(histograms::operations())
        .chain(rings::operations())
        .collect()
}

/// Returns the operations of `percid bench increments` except `plain_add`: additions, percid's with
/// one source.
pub(crate) fn increments(workers: usize, source: Source) -> Vec<Operation> {
    let is_wanted = |operation: &Operation| operation.source.is_none_or(|its| its == source);
    counters::operations(workers).filter(is_wanted).collect()
}

/// Returns `plain_add`, the reference of the others.
pub(crate) fn plain_add(workers: usize) -> Operation {
    counters::plain_add(workers)
}
