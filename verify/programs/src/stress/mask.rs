//! Masks: no drain misses what was published before it began.
//!
//! A worker publishes by a plain store, marks, and notes how many drains have begun by then. When a
//! drain that began later has ended, what was published must be gone: that drain, or one before,
//! has taken it.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use percid::id::SourceError;
use percid::{ActiveMask, Source};

use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

/// Publishers, each with an ID of its own; some beyond those that the mask tests first.
const IDS: [u32; 12] = [0, 1, 2, 3, 62, 63, 64, 65, 500, 511, 512, 8000];

/// A published item, on a line of its own.
#[repr(align(64))]
struct Slot {
    /// Nonzero while a publisher uses the slot.
    taken: AtomicU32,
    published: AtomicU64,
}

struct Masks {
    source: Source,
    mask: ActiveMask,
    slots: [Slot; IDS.len()],
    began: AtomicU64,
    ended: AtomicU64,
    published: AtomicU64,
    found: AtomicU64,
    missed: AtomicU64,
    strangers: AtomicU64,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    let slot = || Slot { taken: AtomicU32::new(0), published: AtomicU64::new(0) };
    Ok(Box::new(Masks {
        source,
        mask: ActiveMask::new(),
        slots: std::array::from_fn(|_| slot()),
        began: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        published: AtomicU64::new(0),
        found: AtomicU64::new(0),
        missed: AtomicU64::new(0),
        strangers: AtomicU64::new(0),
    }))
}

impl Masks {
    fn drain(&self) {
        self.began.fetch_add(1, SeqCst);
        self.mask.drain(|id| match IDS.iter().position(|&known| known == id) {
            Some(index) => {
                let found = self.slots[index].published.swap(0, Relaxed);
                self.found.fetch_add(found, Relaxed);
            }
            None => _ = self.strangers.fetch_add(1, Relaxed),
        });
        self.ended.fetch_add(1, SeqCst);
    }

    /// Waits until a drain has begun and ended; `false` if none comes.
    fn outwait_a_drain(&self) -> bool {
        // Drains do not overlap: there is one remote party. So this many have begun by now, and one
        // more must end.
        let began = self.began.load(SeqCst);
        (0..100_000).any(|_| {
            std::hint::spin_loop();
            self.ended.load(SeqCst) > began
        })
    }
}

impl Subject for Masks {
    fn work(&self, random: &mut Random) {
        // The mask needs no ID of its own; the thief needs some to steal.
        let id = self.source.current_id().unwrap_or(0) as usize;
        let index = (id + random.below(IDS.len())) % IDS.len();
        let slot = &self.slots[index];
        if slot.taken.swap(1, SeqCst) != 0 {
            return;
        }
        // A bit that is set unless a drain comes right now, then a plain store and the test: what
        // the order is about.
        self.mask.mark(IDS[index]);
        slot.published.store(1, Relaxed);
        self.mask.mark(IDS[index]);
        self.published.fetch_add(1, Relaxed);
        if self.outwait_a_drain() && slot.published.swap(0, SeqCst) != 0 {
            self.missed.fetch_add(1, Relaxed);
        }
        slot.taken.store(0, SeqCst);
    }

    fn handle(&self) {
        // A stale mark.
        self.mask.mark(IDS[0]);
    }

    fn visit(&self) {
        // Close together: the remote party of the other structures sleeps in between, and
        // publishers would wait.
        (0..50).for_each(|_| self.drain());
    }

    fn account(&self) -> Verdict {
        self.drain();
        let left = self.slots.iter().map(|slot| slot.published.load(SeqCst)).sum::<u64>();
        let (published, found) = (self.published.load(Relaxed), self.found.load(Relaxed));
        let (missed, strangers) = (self.missed.load(Relaxed), self.strangers.load(Relaxed));
        let figures = format!(
            "published={published} found={found} missed={missed} left={left} strangers={strangers} \
             drains={}",
            self.ended.load(Relaxed)
        );
        verdict(missed == 0 && left == 0 && strangers == 0 && found > 0, figures)
    }
}
