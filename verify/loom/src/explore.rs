//! Running a test under loom, counting, and demanding failure of the negative controls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Explores every interleaving of `test` and prints how many there were.
pub(crate) fn all(name: &str, test: impl Fn() + Sync + Send + 'static) {
    println!("loom: {name}: {} interleavings, none wrong", explore(test));
}

/// Explores like [`all`], but only interleavings in which threads are preempted at most this many
/// times, for tests that have millions of others.
pub(crate) fn bounded(preemptions: usize, name: &str, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    let count = explore_with(&builder, test);
    println!("loom: {name}, up to {preemptions} preemptions: {count} interleavings, none wrong");
}

/// Explores `test`, a negative control, until an interleaving fails; fails itself if none does.
pub(crate) fn expect_failure(name: &str, test: impl Fn() + Sync + Send + 'static) {
    let caught = catch_unwind(AssertUnwindSafe(|| explore(test)));
    assert!(caught.is_err(), "{name}: the negative control passed");
    println!("loom: {name}: caught");
}

fn explore(test: impl Fn() + Sync + Send + 'static) -> usize {
    explore_with(&loom::model::Builder::new(), test)
}

fn explore_with(builder: &loom::model::Builder, test: impl Fn() + Sync + Send + 'static) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    builder.check(move || {
        counting.fetch_add(1, Relaxed);
        test();
    });
    count.load(Relaxed)
}
