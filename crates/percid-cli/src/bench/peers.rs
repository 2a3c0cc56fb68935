//! The counters of other crates, measured in the same run (feature `peers`).

use std::sync::LazyLock;

use contatori::counters::unsigned::Unsigned;
use fast_counter::ConcurrentCounter;
use prometheus::IntCounter;

use super::loops::{Op, repeat_peer};

static CONTATORI: Unsigned = Unsigned::new();
/// As many shards as its documentation recommends: one per CPU.
static FAST_COUNTER: LazyLock<ConcurrentCounter> = LazyLock::new(|| {
    ConcurrentCounter::new(std::thread::available_parallelism().map_or(1, Into::into))
});
static PROMETHEUS: LazyLock<IntCounter> =
    LazyLock::new(|| IntCounter::new("additions", "additions made").expect("a valid name"));

/// The peers' operations by name.
pub(super) const OPS: [(&str, Op); 3] = [
    ("contatori", Op::Peer(contatori_add)),
    ("fast_counter", Op::Peer(fast_counter_add)),
    ("prometheus", Op::Peer(prometheus_inc)),
];

#[inline(never)]
fn contatori_add(times: u64) {
    repeat_peer(times, || CONTATORI.add(1));
}

#[inline(never)]
fn fast_counter_add(times: u64) {
    let counter = &*FAST_COUNTER;
    repeat_peer(times, || counter.add(1));
}

#[inline(never)]
fn prometheus_inc(times: u64) {
    let counter = &*PROMETHEUS;
    repeat_peer(times, || counter.inc());
}
