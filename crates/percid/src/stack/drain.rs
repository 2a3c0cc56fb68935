//! The drain of a stack, shard by shard and item by item.

use super::Stack;
use super::item::{Item, announce_popped, from_word};
use super::shard::{ACTIVATING, Shard};
use crate::arena::Block;
use crate::handle::State;
use crate::id::Source;
use crate::id::set::IdSet;
use crate::seizure::{Seized, Verdict, Visit};
use crate::visit_lock::VisitGuard;

impl<T: Send> Stack<T> {
    /// Passes all items to `visit`, those of every ID and those of the shared list, and returns
    /// their number.
    ///
    /// Waits for a drain by another thread. If `visit` calls it, it does nothing. If `visit`
    /// panics, the items that were not passed to it stay.
    ///
    /// ```
    /// let free = percid::Stack::new(64);
    /// for number in 1..=3 {
    ///     free.push(number).expect("room");
    /// }
    /// let mut sum = 0;
    /// assert_eq!(free.drain(|number| sum += number), 3);
    /// assert_eq!(sum, 6);
    /// ```
    pub fn drain(&self, mut visit: impl FnMut(T)) -> usize {
        let Some(mut draining) = self.begin_drain() else { return 0 };
        let mut count = 0;
        while let Some(item) = draining.next() {
            count += 1;
            visit(item);
        }
        count
    }

    /// Begins a drain that returns one item after the other. Returns `None` inside a drain of this
    /// stack by this thread.
    pub(super) fn begin_drain(&self) -> Option<Drain<'_, T>> {
        let visiting = self.visits.lock()?;
        let parts = match self.handle.state() {
            State::Claimed(block, Some(source)) => Some(Parts::new(block, source)),
            _ => None,
        };
        Some(Drain { stack: self, parts, shared: None, _visiting: visiting })
    }
}

/// A drain, item by item. If it is dropped before its end, the items that it has not returned stay.
#[doc(hidden)]
#[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
#[derive(Debug)]
#[must_use]
pub struct Drain<'s, T> {
    stack: &'s Stack<T>,
    /// The parts of IDs; `None` if no item is left in them.
    parts: Option<Parts>,
    /// Number of items of the shared list that are still due, once the drain has reached that list.
    shared: Option<usize>,
    // Dropped last: the shards are returned under the lock.
    _visiting: VisitGuard<'s>,
}

/// The parts of all IDs, and the progress of the drain.
#[derive(Debug)]
struct Parts {
    block: Block,
    source: Source,
    ids: u32,
    /// The word of the set with the next IDs.
    next_word: usize,
    /// The ID that is bit 0 of the current visit.
    base: u32,
    visit: Visit<'static>,
    /// The shard that is being emptied, and its ID.
    present: Option<(u32, Seized<'static>)>,
}

impl<T: Send> Drain<'_, T> {
    /// Returns the next item.
    #[doc(hidden)]
    #[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
    pub fn next(&mut self) -> Option<T> {
        let item = self.next_of_parts().or_else(|| self.next_shared())?;
        announce_popped(item);
        // SAFETY: the word was made of an item and is converted back once.
        Some(unsafe { from_word(item) })
    }

    fn next_of_parts(&mut self) -> Option<Item> {
        let item = self.parts.as_mut()?.next(&self.stack.members);
        if item.is_none() {
            self.parts = None;
        }
        item
    }

    /// Returns an item of the shared list. It returns at most as many as there were when the drain
    /// reached the list: other threads may push all the time.
    fn next_shared(&mut self) -> Option<Item> {
        let due = self.shared.get_or_insert_with(|| self.stack.chunks.items());
        *due = due.checked_sub(1)?;
        self.stack.chunks.pop()
    }
}

impl Parts {
    fn new(block: Block, source: Source) -> Parts {
        let visit = Visit::new(0, false);
        Parts { block, source, ids: source.id_count(), next_word: 0, base: 0, visit, present: None }
    }

    fn next(&mut self, members: &IdSet) -> Option<Item> {
        loop {
            if let Some((id, seized)) = &mut self.present {
                let shard = Shard { address: self.block.of_id(*id) };
                if let Some(item) = shard.pop(seized) {
                    return Some(item);
                }
                members.remove(*id);
                seized.value = 0;
                self.present = None;
            }
            self.present = Some(self.seize_next(members)?);
        }
    }

    fn seize_next(&mut self, members: &IdSet) -> Option<(u32, Seized<'static>)> {
        let sections = self.source != Source::Atomic;
        let judge = |top| match top {
            1.. => Verdict::Seize,
            0 | ACTIVATING => Verdict::Pass,
            // Another thread owns the shard. With sections that could only be a drain, and this is
            // the only drain: the word was left by a thread of the parent, at the time of a fork.
            _ if sections => Verdict::Pass,
            _ => Verdict::Wait,
        };
        loop {
            let (block, base) = (self.block, self.base);
            if let Some((bit, seized)) = self.visit.next(|bit| block.word_of_id(base + bit), judge)
            {
                return Some((base + bit, seized));
            }
            let (index, bits) = members.next_word(self.next_word, self.ids)?;
            self.next_word = index + 1;
            self.base = index as u32 * 64;
            self.visit = Visit::new(bits, sections);
        }
    }
}
