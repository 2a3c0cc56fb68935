//! Reading under locks, references, limits and records: percid-sync's, and other crates' (feature
//! `sync-peers`).

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc as StdArc, RwLock as StdRwLock};

use percid::Source;
use percid::id::SourceError;
use percid_sync::{Arc, Budget, Domain, Owner, RcuCell, ReadBuffer, RwLock};

use super::counters;
use super::form::{observe, repeat};
use super::operation::{Account, Family, Measured, Operation};

/// Records between two drains.
const DRAINED: u64 = 1000;

/// Returns all operations of `percid bench sync` except `plain_add`.
pub(crate) fn operations(workers: usize) -> Vec<Operation> {
    let additions = counters::operations(workers).filter(|one| one.name == "counter_add");
    additions.chain(readers()).chain(references()).chain(limits()).collect()
}

/// A loop over a function, and a function that returns how much of it is still under way.
struct Each<T, F> {
    subject: T,
    once: F,
    left: fn(&T) -> Option<u64>,
}

impl<T: Sync, F: Fn(&T, u64) + Sync> Measured for Each<T, F> {
    fn repeat(&self, times: u64, _: usize) {
        each(&self.subject, &self.once, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        (self.left)(&self.subject)
            .map(|left| Account { added: done as i64, sum: (done - left) as i64 })
    }
}

#[inline(never)]
fn each<T, F: Fn(&T, u64)>(subject: &T, once: &F, times: u64) {
    repeat(times, |left| once(subject, left));
}

fn other<T: Sync + 'static>(
    family: Family,
    name: &'static str,
    subject: T,
    once: impl Fn(&T, u64) + Sync + 'static,
) -> Operation {
    Operation::other(family, name, Each { subject, once, left: |_| None })
}

/// Creates an operation of percid-sync for each source.
fn own<T: Sync + 'static>(
    family: Family,
    name: &'static str,
    subject: impl Fn(Source) -> Result<T, SourceError>,
    once: impl Fn(&T, u64) + Copy + Sync + 'static,
    left: fn(&T) -> Option<u64>,
) -> impl Iterator<Item = Operation> {
    Operation::per_source(family, name, move |source| {
        Ok(Each { subject: subject(source)?, once, left })
    })
}

fn readers() -> impl Iterator<Item = Operation> {
    const FAMILY: Family = Family::Readers;
    let others = [
        other(FAMILY, "std_rwlock_read", StdRwLock::new(5), |lock, _| {
            observe(*lock.read().expect("not poisoned"));
        }),
        #[cfg(feature = "sync-peers")]
        other(FAMILY, "parking_lot_rwlock_read", parking_lot::RwLock::new(5), |lock, _| {
            observe(*lock.read());
        }),
        #[cfg(feature = "sync-peers")]
        other(FAMILY, "sharded_lock_read", sharded_lock(), |lock, _| {
            observe(*lock.read().expect("not poisoned"));
        }),
        #[cfg(feature = "sync-peers")]
        other(FAMILY, "epoch_pin", (), |(), _| drop(crossbeam_epoch::pin())),
        #[cfg(feature = "sync-peers")]
        other(FAMILY, "arc_swap_load", arc_swap::ArcSwap::from_pointee(5), |swap, _| {
            observe(**swap.load());
        }),
    ];
    let lock = own(
        FAMILY,
        "rw_lock_read",
        |source| RwLock::with_source(source, 5),
        |lock, _| observe(*lock.read().expect("not poisoned")),
        |lock| Some(u64::from(lock.try_write().is_err())),
    );
    let domain = own(
        FAMILY,
        "domain_read",
        Domain::with_source,
        |domain, _| drop(domain.read()),
        |domain| Some(domain.reader_count() as u64),
    );
    let cell = own(
        FAMILY,
        "rcu_cell_load",
        |source| {
            let domain: &'static Domain = Box::leak(Box::new(Domain::with_source(source)?));
            Ok((domain, RcuCell::new(domain, 5)))
        },
        |(domain, cell), _| observe(*cell.load(&domain.read())),
        |(domain, _)| Some(domain.reader_count() as u64),
    );
    others.into_iter().chain(lock).chain(domain).chain(cell)
}

#[cfg(feature = "sync-peers")]
fn sharded_lock() -> crossbeam_utils::sync::ShardedLock<u64> {
    crossbeam_utils::sync::ShardedLock::new(5)
}

fn references() -> impl Iterator<Item = Operation> {
    const FAMILY: Family = Family::References;
    let std = other(FAMILY, "std_arc", StdArc::new(5), |arc: &StdArc<u64>, _| {
        observe(*StdArc::clone(arc));
    });
    let own = own(
        FAMILY,
        "arc",
        |source| {
            let owner = Owner::with_source(source, 5)?;
            let shared = owner.share();
            Ok((owner, shared))
        },
        |(_, shared): &(Owner<u64>, Arc<u64>), _| observe(*shared.clone()),
        |_| None,
    );
    [std].into_iter().chain(own)
}

fn limits() -> impl Iterator<Item = Operation> {
    const FAMILY: Family = Family::Limits;
    let budget = |source| Budget::with_source(source, 1 << 40, 1 << 20);
    let atomic = other(FAMILY, "atomic_budget", AtomicI64::new(1 << 40), |left, _| {
        let charge = |left| (left > 0).then(|| left - 1);
        observe(u64::from(left.fetch_update(Relaxed, Relaxed, charge).is_ok()));
        left.fetch_add(1, Relaxed);
    });
    let charge = own(
        FAMILY,
        "budget_charge",
        budget,
        |budget: &Budget, _| {
            observe(u64::from(budget.try_charge(1).is_ok()));
            budget.release(1);
        },
        |budget| Some(budget.exact()),
    );
    let load = own(
        FAMILY,
        "budget_load",
        budget,
        |budget: &Budget, _| observe(budget.approximate()),
        |_| None,
    );
    let buffer = own(
        FAMILY,
        "read_buffer",
        ReadBuffer::<u64>::with_source,
        |buffer, left| {
            observe(u64::from(buffer.record(left)));
            if left.is_multiple_of(DRAINED) {
                buffer.drain(observe);
            }
        },
        |_| None,
    );
    [atomic].into_iter().chain(charge).chain(load).chain(buffer)
}
