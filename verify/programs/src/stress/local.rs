//! Locals: no two closures have one value, and no value is lost, with visits and drains all the
//! time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use percid::id::SourceError;
use percid::{Local, Source};

use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

/// Increments of a batch.
const BATCH: usize = 300;

/// A count that records whether a thread is using it.
#[derive(Default)]
struct Count {
    in_use: AtomicBool,
    count: u64,
}

struct Locals {
    local: Local<Count>,
    added: AtomicU64,
    taken: AtomicU64,
    doubled: AtomicU64,
    visits: AtomicU64,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    Ok(Box::new(Locals {
        local: <Local<_>>::with_source(source, Count::default)?,
        added: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        doubled: AtomicU64::new(0),
        visits: AtomicU64::new(0),
    }))
}

impl Locals {
    fn alone(&self, value: &mut Count, body: impl FnOnce(&mut u64)) {
        let doubled = value.in_use.swap(true, Relaxed);
        body(&mut value.count);
        value.in_use.store(false, Relaxed);
        self.doubled.fetch_add(u64::from(doubled), Relaxed);
    }

    fn add(&self) {
        self.local.with(|value| self.alone(value, |count| *count += 1));
        self.added.fetch_add(1, Relaxed);
    }
}

impl Locals {
    fn visit_once(&self) {
        if self.visits.fetch_add(1, Relaxed).is_multiple_of(4) {
            self.local.drain(|value| _ = self.taken.fetch_add(value.count, Relaxed));
        } else {
            self.local.for_each(|value| {
                self.alone(value, |count| {
                    self.taken.fetch_add(std::mem::take(count), Relaxed);
                });
            });
        }
    }
}

impl Subject for Locals {
    fn work(&self, random: &mut Random) {
        (0..BATCH).for_each(|_| self.add());
        if random.below(10) == 0 {
            // Preempted inside a closure, sometimes.
            self.local.with(|value| self.alone(value, |_| std::thread::yield_now()));
        }
    }

    fn handle(&self) {
        self.add();
    }

    fn visit(&self) {
        // Few: each waits for threads that have a value and no CPU.
        (0..4).for_each(|_| self.visit_once());
    }

    fn account(&self) -> Verdict {
        let taken_before = self.taken.load(Relaxed);
        self.local.drain(|value| _ = self.taken.fetch_add(value.count, Relaxed));
        let (added, doubled) = (self.added.load(Relaxed), self.doubled.load(Relaxed));
        let lost = added as i64 - self.taken.load(Relaxed) as i64;
        verdict(
            lost == 0 && doubled == 0 && taken_before > 0,
            format!("increments={added} lost={lost} doubled={doubled} taken={taken_before}"),
        )
    }
}
