//! The counters of other crates, measured in the same run (feature `counter-peers`).

use contatori::counters::unsigned::Unsigned;
use contatori::counters::{CounterValue, Observable};
use fast_counter::ConcurrentCounter;
use prometheus::IntCounter;

use super::form::repeat;
use super::operation::{Account, Family, Measured, Operation};

pub(super) fn operations() -> [Operation; 3] {
    let family = Family::Counters;
    // The number of shards that its documentation recommends: one per CPU.
    let shards = std::thread::available_parallelism().map_or(1, Into::into);
    let prometheus = IntCounter::new("additions", "additions made").expect("a valid name");
    [
        Operation::other(family, "contatori", Unsigned::new()),
        Operation::other(family, "fast_counter", ConcurrentCounter::new(shards)),
        Operation::other(family, "prometheus", prometheus),
    ]
}

impl Measured for Unsigned {
    fn repeat(&self, times: u64, _: usize) {
        contatori_add(self, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        let CounterValue::Unsigned(sum) = self.value() else { return None };
        Some(Account::of(done, sum as i64))
    }
}

impl Measured for ConcurrentCounter {
    fn repeat(&self, times: u64, _: usize) {
        fast_counter_add(self, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, self.sum() as i64))
    }
}

impl Measured for IntCounter {
    fn repeat(&self, times: u64, _: usize) {
        prometheus_inc(self, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        Some(Account::of(done, self.get() as i64))
    }
}

#[inline(never)]
fn contatori_add(counter: &Unsigned, times: u64) {
    repeat(times, |_| counter.add(1));
}

#[inline(never)]
fn fast_counter_add(counter: &ConcurrentCounter, times: u64) {
    repeat(times, |_| counter.add(1));
}

#[inline(never)]
fn prometheus_inc(counter: &IntCounter, times: u64) {
    repeat(times, |_| counter.inc());
}
