//! Evicted pages on their way back to the pool.
//!
//! A page is wiped before it is used again, but not by the thread that waits for its own page: the
//! evicting thread puts it into the batch of its ID and continues; a background thread wipes the
//! batches. The [`ActiveMask`] contains the IDs that have a batch at all, so that the background
//! thread visits only those and not one batch for every CPU that the machine might have. Setting
//! its bit costs an evicting thread a load and a test while the bit is set.

use std::sync::{Mutex, MutexGuard, PoisonError};

use percid::pool::Pooled;
use percid::{ActiveMask, Source};

use crate::page::Page;

/// A thread that finds that many pages in its batch wipes them itself: the background thread is too
/// slow.
const LONGEST_BATCH: usize = 512;

/// The pages that wait to be wiped.
pub(crate) struct Retired<'p> {
    source: Source,
    active: ActiveMask,
    /// For every ID there can be: IDs are smaller than the number of possible CPUs.
    batches: Box<[Batch<'p>]>,
}

/// On cache lines of its own: the lock is the CPU's that has the ID, but for the moments in which
/// the batch is taken.
#[repr(align(128))]
struct Batch<'p>(Mutex<Vec<Pooled<'p, Page>>>);

impl<'p> Retired<'p> {
    pub(crate) fn new() -> Retired<'p> {
        let cpus = percid::machine::read().possible.iter().last().map_or(1, |last| last + 1);
        Retired {
            source: percid::init().source,
            active: ActiveMask::new(),
            batches: (0..cpus).map(|_| Batch(Mutex::default())).collect(),
        }
    }

    /// Hands a page over to the background thread.
    pub(crate) fn add(&self, page: Pooled<'p, Page>) {
        let id = self.id();
        let mut batch = self.batch(id);
        batch.push(page);
        let full = batch.len() >= LONGEST_BATCH;
        drop(batch);
        // In this order: a thread that finds the mark finds the page.
        self.active.mark(id);
        if full {
            self.wipe(id);
        }
    }

    /// Wipes the pages of all IDs that have any, and returns how many there were.
    pub(crate) fn drain(&self) -> usize {
        let mut count = 0;
        self.active.drain(|id| count += self.wipe(id));
        count
    }

    /// Returns the number of pages that wait.
    pub(crate) fn len(&self) -> usize {
        (0..self.batches.len() as u32).map(|id| self.batch(id).len()).sum()
    }

    /// Wipes a batch. Dropping the pages gives them back to the pool.
    fn wipe(&self, id: u32) -> usize {
        let batch = std::mem::take(&mut *self.batch(id));
        let count = batch.len();
        batch.into_iter().for_each(|mut page| page.wipe());
        count
    }

    /// Returns the batch of this thread's pages. The thread may be moved at once: then it shares a
    /// batch for one page.
    fn id(&self) -> u32 {
        self.source.current_id().unwrap_or(0) % self.batches.len() as u32
    }

    fn batch(&self, id: u32) -> MutexGuard<'_, Vec<Pooled<'p, Page>>> {
        self.batches[id as usize].0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use percid::Pool;

    use super::*;

    fn used(pool: &Pool<Page>) -> Pooled<'_, Page> {
        let mut page = pool.get();
        assert!(page.is_blank());
        page.load(1);
        page
    }

    #[test]
    fn pages_come_back_blank_and_none_is_left() {
        let pool: Pool<Page> = Pool::new(Page::blank, 64);
        let retired = Retired::new();
        let early = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..2000).for_each(|_| retired.add(used(&pool))));
            }
            (0..200).map(|_| retired.drain()).sum::<usize>()
        });
        retired.drain();
        assert_eq!(retired.len(), 0);
        assert!(pool.drain() > 0, "{early} pages were wiped early");
    }

    #[test]
    fn a_batch_does_not_grow_for_ever() {
        let pool: Pool<Page> = Pool::new(Page::blank, 64);
        let retired = Retired::new();
        (0..100 * LONGEST_BATCH).for_each(|_| retired.add(used(&pool)));
        assert!(retired.len() < LONGEST_BATCH * retired.batches.len());
    }
}
