//! Exclusive access to an integer, and one addition under it.

use std::sync::Mutex;

use percid::Local;

use super::form::repeat;
use super::operation::{Account, Alone, Family, Measured, Operation, one_per_worker};

const FAMILY: Family = Family::Locks;

pub(super) fn operations(workers: usize) -> impl Iterator<Item = Operation> {
    let others = [
        private::<Mutex<u64>>("std_mutex_private", workers),
        shared::<Mutex<u64>>("std_mutex_shared"),
        #[cfg(feature = "peers")]
        private::<parking_lot::Mutex<u64>>("parking_lot_mutex_private", workers),
        #[cfg(feature = "peers")]
        shared::<parking_lot::Mutex<u64>>("parking_lot_mutex_shared"),
    ];
    others.into_iter().chain(Operation::per_source(FAMILY, "local_with", |source| {
        <Local<_>>::with_source(source, || 0).map(Shared)
    }))
}

fn private<L: Lock + Default + 'static>(name: &'static str, workers: usize) -> Operation {
    Operation::other(FAMILY, name, Private(one_per_worker::<L>(workers)))
}

fn shared<L: Lock + Default + 'static>(name: &'static str) -> Operation {
    Operation::other(FAMILY, name, Shared(L::default()))
}

/// An integer protected by a lock.
trait Lock: Sync {
    fn with<R>(&self, visit: impl FnOnce(&mut u64) -> R) -> R;

    /// Returns the sum of all integers under the lock.
    fn sum(&self) -> u64 {
        self.with(|integer| *integer)
    }
}

impl Lock for Mutex<u64> {
    #[inline(always)]
    fn with<R>(&self, visit: impl FnOnce(&mut u64) -> R) -> R {
        visit(&mut self.lock().expect("no thread panics with it"))
    }
}

#[cfg(feature = "peers")]
impl Lock for parking_lot::Mutex<u64> {
    #[inline(always)]
    fn with<R>(&self, visit: impl FnOnce(&mut u64) -> R) -> R {
        visit(&mut self.lock())
    }
}

impl Lock for Local<u64> {
    #[inline(always)]
    fn with<R>(&self, visit: impl FnOnce(&mut u64) -> R) -> R {
        Local::with(self, visit)
    }

    fn sum(&self) -> u64 {
        let mut sum = 0;
        self.for_each(|integer| sum += *integer);
        sum
    }
}

/// One lock per worker, which no other thread takes.
struct Private<L>(Box<[Alone<L>]>);

impl<L: Lock> Measured for Private<L> {
    fn repeat(&self, times: u64, worker: usize) {
        add_under(&self.0[worker].0, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        let sum: u64 = self.0.iter().map(|lock| lock.0.sum()).sum();
        Some(Account::of(done, sum as i64))
    }
}

/// One lock for all threads.
struct Shared<L>(L);

impl<L: Lock> Measured for Shared<L> {
    fn repeat(&self, times: u64, _: usize) {
        add_under(&self.0, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, self.0.sum() as i64))
    }
}

#[inline(never)]
fn add_under<L: Lock>(lock: &L, times: u64) {
    repeat(times, |_| lock.with(|integer| *integer += 1));
}
