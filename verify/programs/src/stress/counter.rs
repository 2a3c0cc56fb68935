//! Counters: no increment is lost and none is counted twice.
//!
//! The thief writes through the stolen ID itself, by loads and stores without any protection: a
//! thief that only freed the ID would not reveal a missing fence. Besides, counters are made, used
//! and dropped, so that cells go round among threads.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use percid::id::SourceError;
use percid::testing::Stolen;
use percid::{Counter, Source};

use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

/// Increments of a batch.
const BATCH: i64 = 1000;

/// Unprotected increments through each stolen ID.
const LOOT: i64 = 20;

struct Counters {
    source: Source,
    counter: Counter,
    added: AtomicI64,
    taken: AtomicI64,
    short_lived: AtomicU64,
    short_lived_wrong: AtomicU64,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    Ok(Box::new(Counters {
        source,
        counter: Counter::with_source(source)?,
        added: AtomicI64::new(0),
        taken: AtomicI64::new(0),
        short_lived: AtomicU64::new(0),
        short_lived_wrong: AtomicU64::new(0),
    }))
}

impl Subject for Counters {
    fn work(&self, random: &mut Random) {
        (0..BATCH).for_each(|_| self.counter.add(1));
        self.added.fetch_add(BATCH, Relaxed);
        if random.below(100) == 0 {
            self.make_and_drop();
        }
    }

    fn handle(&self) {
        self.counter.add(1);
        self.added.fetch_add(1, Relaxed);
    }

    fn visit(&self) {
        self.taken.fetch_add(self.counter.take(), Relaxed);
    }

    fn rob(&self, stolen: &Stolen) {
        (0..LOOT).for_each(|_| stolen.add_unprotected(&self.counter, 1));
        self.added.fetch_add(LOOT, Relaxed);
    }

    fn account(&self) -> Verdict {
        let added = self.added.load(Relaxed);
        let lost = added - self.counter.sum() - self.taken.load(Relaxed);
        let wrong = self.short_lived_wrong.load(Relaxed);
        let short_lived = self.short_lived.load(Relaxed);
        let figures = format!(
            "increments={added} lost={lost} short_lived={short_lived} short_lived_wrong={wrong}"
        );
        verdict(lost == 0 && wrong == 0, figures)
    }
}

impl Counters {
    fn make_and_drop(&self) {
        let new = || Counter::with_source(self.source).expect("an available source");
        let counters = [new(), new()];
        counters.iter().for_each(|counter| (0..10).for_each(|_| counter.add(1)));
        let wrong = counters.iter().filter(|counter| counter.sum() != 10).count();
        self.short_lived.fetch_add(2, Relaxed);
        self.short_lived_wrong.fetch_add(wrong as u64, Relaxed);
    }
}
