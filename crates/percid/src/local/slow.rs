//! The slow path of a loan: the first value of an ID, retries, and extra shards.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::ptr::{self, NonNull};

use super::lock::{CLOSED, NONE, READY};
use super::shard::{Extra, Shard, ShardGuard, announce_acquired, shard_at};
use super::{Local, left_behind};
use crate::arena::{Block, STRIDE};
use crate::critical::by_mark;
use crate::handle::{self, Needs, State};
use crate::id::Source;
use crate::push_list;
use crate::retry::retry;
use crate::sys::{memory, preserving_errno, thread};

/// A shard that the calling thread has taken, and the earlier state of its lock.
struct Acquired<T> {
    shard: NonNull<Shard<T>>,
    found: i64,
    /// `None` for an extra shard.
    id: Option<u32>,
}

impl<T: Send, F: Fn() -> T> Local<T, F> {
    /// Returns a shard for this thread if the fast path has none.
    #[cold]
    #[inline(never)]
    pub(super) fn hold_slowly(&self) -> Option<ShardGuard<'_, T>> {
        if let Some(shard) = self.handle.atomic_block().and_then(take_at_hint) {
            announce_acquired(shard);
            return Some(ShardGuard { shard, released: READY, lent: PhantomData });
        }
        let acquired = preserving_errno(|| {
            let acquired = self.acquire_slowly().or_else(|| self.acquire_extra())?;
            // This happens before there is a value, and before the lock is released, so a visit
            // misses no value. If `make` panics, the member has no value, which only costs a visit.
            if let Acquired { found: NONE, id, .. } = acquired {
                left_behind::note(&self.generation);
                id.into_iter().for_each(|id| self.members.insert(id));
            }
            Some(acquired)
        })?;
        let Acquired { shard, found, .. } = acquired;
        announce_acquired(shard);
        let mut held = ShardGuard { shard, released: found, lent: PhantomData };
        if found == NONE {
            held.fill(self.make.as_ref());
        }
        Some(held)
    }

    /// Returns the shard of this thread's ID, unless another thread is using it.
    fn acquire_slowly(&self) -> Option<Acquired<T>> {
        let State::Claimed(block, Some(source)) = self.handle.settle(Needs::Fence, Self::BYTES)
        else {
            return None;
        };
        // The section compares the lock with the state that was read before it.
        let read = Cell::new(None);
        let acquire = || {
            let (mine, found) = read.take()?;
            let shard: NonNull<Shard<T>> = try_acquire(block, source, mine, found)?;
            let id = ((shard.addr().get() - block.0) / STRIDE - 1) as u32;
            Some(Acquired { shard, found, id: Some(id) })
        };
        let read_lock = || {
            let mine: NonNull<Shard<T>> = shard_at(block.of_id(source.ensure_id_hint()?));
            // SAFETY: shards stay mapped as long as the handle.
            let lock = unsafe { &(*mine.as_ptr()).lock };
            let found = lock.state();
            if lock.is_closed() || (found != READY && found != NONE) {
                return None;
            }
            read.set(Some((mine, found)));
            Some(ControlFlow::Continue(()))
        };
        let _ = read_lock()?;
        retry(acquire, read_lock)
    }

    /// Returns an extra shard that no thread uses, or a new one.
    fn acquire_extra(&self) -> Option<Acquired<T>> {
        let free = self.extras().find_map(|shard| {
            // SAFETY: extras are not moved or unmapped as long as the handle exists.
            let lock = unsafe { &(*shard.as_ptr()).lock };
            let found = lock.state();
            let taken = (found == READY || found == NONE) && lock.try_take(found);
            taken.then_some(Acquired { shard, found, id: None })
        });
        free.or_else(|| self.new_extra())
    }

    fn new_extra(&self) -> Option<Acquired<T>> {
        let extra = memory::map(size_of::<Extra<T>>())?.cast::<Extra<T>>();
        // SAFETY: fresh zeroed memory, large enough and aligned to a page; all zero is a valid
        // lock, and the value counts as none.
        unsafe { (*extra.as_ptr()).shard.lock.take_fresh() };
        // SAFETY: no other thread has access to the extra before it is pushed.
        let link = |next| unsafe { (*extra.as_ptr()).next = next };
        push_list::push(&self.extras, extra.as_ptr(), link);
        Some(Acquired { shard: extra.cast(), found: NONE, id: None })
    }
}

/// Takes the shard of the thread's hint for the atomic source, if it is ready.
fn take_at_hint<T>(block: Block) -> Option<NonNull<Shard<T>>> {
    let shard: NonNull<Shard<T>> = shard_at(block.of_id(Source::Atomic.ensure_id_hint()?));
    // SAFETY: shards stay mapped as long as the handle.
    unsafe { (*shard.as_ptr()).lock.try_take(READY) }.then_some(shard)
}

/// Takes the lock of this thread's shard, which is `mine` unless it has been moved since.
fn try_acquire<T>(
    block: Block,
    source: Source,
    mine: NonNull<Shard<T>>,
    expected: i64,
) -> Option<NonNull<Shard<T>>> {
    if source == Source::Atomic {
        // SAFETY: shards stay mapped as long as the handle.
        let lock = unsafe { &(*mine.as_ptr()).lock };
        return lock.try_take(expected).then_some(mine);
    }
    // SAFETY: a block of shards, whose source has been prepared.
    let address = unsafe { acquire(handle::marked(block, source), expected) };
    NonNull::new(ptr::with_exposed_provenance_mut(address))
}

/// Runs the section, in one place for all types of values.
///
/// # Safety
///
/// `word` is a block of shards with the mark of a source that has been prepared.
#[inline(never)]
unsafe fn acquire(word: usize, expected: i64) -> usize {
    let token = thread::token();
    // SAFETY: the caller passes a block of shards with the mark of a prepared source.
    unsafe { by_mark!(word, acquire::<CLOSED>(expected as usize, token), else 0) }
}
