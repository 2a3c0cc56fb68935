//! Visits of all values, one after the other.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::Local;
use super::closed::{Batch, Closed};
use super::left_behind::Forks;
use super::lock::{NONE, READY};
use super::shard::{Extra, LocalGuard, Shard, ShardGuard, announce_acquired, shard_at};
use crate::arena::Block;
use crate::handle::State;
use crate::id::set::ids;
use crate::id::{Source, fence};
use crate::push_list;
use crate::sys::thread;
use crate::visit_lock::VisitGuard;

impl<T: Send, F: Fn() -> T> Local<T, F> {
    /// Visits all values, of every ID and the extra ones.
    ///
    /// Waits for closures that are using one. If `f` panics, the values that come after are not
    /// visited.
    ///
    /// ```
    /// let totals = percid::Local::new(|| 0u64);
    /// totals.with(|total| *total += 4);
    /// let mut sum = 0;
    /// totals.for_each(|total| sum += *total);
    /// assert_eq!(sum, 4);
    /// ```
    ///
    /// # Panics
    ///
    /// If the calling thread is inside a closure of [`with`](Local::with) or of a visit of the same
    /// object: it would wait for itself.
    pub fn for_each(&self, mut f: impl FnMut(&mut T)) {
        let mut visit = self.begin_visit().unwrap_or_else(HeldByCaller::panic);
        while let Some(value) = visit.next().unwrap_or_else(HeldByCaller::panic) {
            f(value);
        }
    }

    /// Takes all values out and passes them to `f`. New ones are made when they are needed.
    ///
    /// Waits for closures that are using one. If `f` panics, the values that come after stay.
    ///
    /// ```
    /// let batches = percid::Local::new(Vec::<u32>::new);
    /// batches.with(|batch| batch.push(7));
    /// let mut all = Vec::new();
    /// batches.drain(|batch| all.extend(batch));
    /// assert_eq!(all, [7]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the calling thread is inside a closure or a visit of the same object, as for
    /// [`for_each`](Local::for_each).
    pub fn drain(&self, mut f: impl FnMut(T)) {
        let mut visit = self.begin_visit().unwrap_or_else(HeldByCaller::panic);
        while visit.next().unwrap_or_else(HeldByCaller::panic).is_some() {
            if let Some(value) = visit.take() {
                f(value);
            }
        }
    }

    /// Begins a visit that returns one value after the other: see [`Visit`].
    ///
    /// # Errors
    ///
    /// The calling thread is inside a closure or a visit of this object.
    pub(super) fn begin_visit(&self) -> Result<Visit<'_, T, F>, HeldByCaller> {
        // Before waiting for other visitors, one of which may wait for this thread.
        if self.is_held_by_caller() {
            return Err(HeldByCaller);
        }
        let visiting = self.visits.lock().ok_or(HeldByCaller)?;
        let parts = match self.handle.state() {
            State::Claimed(block, Some(source)) => Some((block, source, source.id_count())),
            _ => None,
        };
        Ok(Visit {
            local: self,
            present: None,
            closed: None,
            parts,
            next_word: 0,
            extra: None,
            forks: Forks::since(&self.generation),
            _visiting: visiting,
        })
    }

    /// Returns `true` if the calling thread holds a value, including one of a visit.
    fn is_held_by_caller(&self) -> bool {
        let token = thread::token() as i64;
        // SAFETY: shards stay mapped as long as the handle.
        let is_mine = |shard: NonNull<Shard<T>>| unsafe { (*shard.as_ptr()).lock.state() } == token;
        let State::Claimed(block, source) = self.handle.state() else {
            return self.extras().any(is_mine);
        };
        let words = self.members.words_below(source.map_or(0, Source::id_count));
        let mut members = words.flat_map(|(index, bits)| ids(index, bits));
        members.any(|id| is_mine(shard_at(block.of_id(id)))) || self.extras().any(is_mine)
    }
}

/// The error of a visit that would wait for its own thread.
#[doc(hidden)]
#[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
#[derive(Debug)]
pub struct HeldByCaller;

impl HeldByCaller {
    #[cold]
    fn panic<R>(self) -> R {
        panic!(
            "percid::Local: a visit waits for all values, and the calling thread has one of this object"
        )
    }
}

/// A visit, value by value. If it is dropped before its end, the values that it has not returned
/// stay.
#[doc(hidden)]
#[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
#[derive(Debug)]
#[must_use]
pub struct Visit<'l, T, F = fn() -> T> {
    local: &'l Local<T, F>,
    // In the order in which they are dropped.
    /// The current value and its ID, which is that of the lowest closed shard.
    present: Option<(LocalGuard<'l, T>, Option<u32>)>,
    closed: Option<Closed<T>>,
    /// The shards of IDs: `None` when all were visited.
    parts: Option<(Block, Source, u32)>,
    /// The word of the set with the next IDs.
    next_word: usize,
    /// The next extra shard, once the visit has reached these.
    extra: Option<*mut Extra<T>>,
    forks: Forks,
    _visiting: VisitGuard<'l>,
}

impl<T: Send, F> Visit<'_, T, F> {
    /// Returns the next value, until the next call.
    ///
    /// # Errors
    ///
    /// The calling thread has taken a value since the visit began, and it is the next one.
    #[doc(hidden)]
    #[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
    pub fn next(&mut self) -> Result<Option<&mut T>, HeldByCaller> {
        if self.present.take().is_some() {
            self.closed.iter_mut().for_each(Closed::open_lowest);
        }
        while !self.take_next()? {
            if !self.close_next() {
                self.forks.settle(&self.local.generation);
                return Ok(None);
            }
        }
        Ok(self.present.as_mut().map(|(held, _)| held.value()))
    }

    /// Takes out the last value that [`next`](Visit::next) returned; `None` if that was done.
    #[doc(hidden)]
    #[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
    pub fn take(&mut self) -> Option<T> {
        let (held, id) = self.present.as_mut()?;
        if held.0.released == NONE {
            return None;
        }
        held.0.released = NONE;
        if let Some(id) = *id {
            self.local.members.remove(id);
        }
        // SAFETY: the value is this thread's, and from now on the shard counts as having none.
        Some(unsafe { ptr::read(held.value()) })
    }

    /// Takes the lock of the next closed shard that has a value, and opens those that have none.
    fn take_next(&mut self) -> Result<bool, HeldByCaller> {
        let Some(closed) = &mut self.closed else { return Ok(false) };
        while let Some(bit) = closed.lowest() {
            // Only this thread stores its token, and never in a closed shard.
            if closed.batch.lock(bit).state() == thread::token() as i64 {
                return Err(HeldByCaller);
            }
            if closed.batch.lock(bit).take_closed(|backoff| self.forks.has_left(backoff)) {
                let shard = closed.batch.shard(bit);
                announce_acquired(shard);
                let held = LocalGuard(ShardGuard { shard, released: READY, lent: PhantomData });
                self.present = Some((held, closed.batch.id(bit)));
                return Ok(true);
            }
            closed.open_lowest();
        }
        self.closed = None;
        Ok(false)
    }

    /// Closes the next shards. Returns `false` if there are none.
    fn close_next(&mut self) -> bool {
        self.close_next_ids() || self.close_next_extra()
    }

    fn close_next_ids(&mut self) -> bool {
        let Some((block, source, end)) = self.parts else { return false };
        let Some((index, bits)) = self.local.members.next_word(self.next_word, end) else {
            self.parts = None;
            return false;
        };
        self.next_word = index + 1;
        self.closed = Some(Closed::new(Batch::Ids { block, base: index as u32 * 64 }, bits));
        if source != Source::Atomic && fence::all().is_err() {
            self.closed = None;
            self.forks.pass_by();
        }
        true
    }

    fn close_next_extra(&mut self) -> bool {
        let next = self.extra.get_or_insert_with(|| push_list::first(&self.local.extras));
        let Some(extra) = NonNull::new(*next) else { return false };
        // SAFETY: extras are not moved or unmapped until the handle is dropped; `next` is never
        // changed after the extra was published.
        *next = unsafe { (*extra.as_ptr()).next };
        self.closed = Some(Closed::new(Batch::Extra(extra.cast()), 1));
        true
    }
}
