//! Visits: the values are taken away from their IDs, one after the other.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::PerId;
use super::shard::{Extra, Held, Hold, NONE, READY, Shard, making, shard_at};
use crate::arena::Block;
use crate::backoff::Backoff;
use crate::fence::Refused;
use crate::handle::State;
use crate::id::{Source, fence};
use crate::push_list;
use crate::sys::thread;
use crate::visit_lock::VisitGuard;

/// IDs that one fence takes away.
pub(super) const BATCH: usize = 64;

impl<T: Send + Sync, F> PerId<T, F> {
    /// Waits for other visits and takes their lock; `None` if the calling thread has it.
    pub(crate) fn lock_visits(&self) -> Option<VisitGuard<'_>> {
        self.visits.lock()
    }

    /// Takes the values away from their IDs, one after the other: see [`Visit`].
    ///
    /// ```
    /// use percid::{PerId, per_id::Word};
    ///
    /// static ALLOWANCE: PerId<Word> = PerId::new(|| Word::new(0));
    ///
    /// let taken: i64 = ALLOWANCE
    ///     .visit()
    ///     .map(|word| {
    ///         let left = word.load();
    ///         word.store(0); // no thread can use it meanwhile
    ///         left
    ///     })
    ///     .sum();
    /// assert_eq!(taken, 0);
    /// ```
    ///
    /// Waits for other visits of this object. If the calling thread is inside one, the result is an
    /// empty visit.
    pub fn visit(&self) -> Visit<'_, T, F> {
        let visiting = self.lock_visits();
        let ids = match self.handle.state() {
            State::Claimed(block, Some(source)) if visiting.is_some() => {
                Some(Ids { block, source, next: 0, end: source.id_count() })
            }
            _ => None,
        };
        let extra =
            if visiting.is_some() { push_list::first(&self.extras) } else { std::ptr::null_mut() };
        let missed = if visiting.is_some() { 0 } else { self.iter().count() };
        Visit { held: Batch::new(), ids, extra, missed, per_id: PhantomData, _visiting: visiting }
    }

    /// Takes the value of one ID away from it: no operation changes that value until the result is
    /// dropped. Threads with this ID work on others meanwhile.
    ///
    /// Waits for visits of the object, but not for one of the calling thread. Costs one fence, about
    /// 10 us. Not async-signal-safe.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Field, Missed, Word}};
    ///
    /// let words = PerId::new(|| Word::new(5));
    /// assert_eq!(words.hold(0).err(), Some(Missed::NoValue));
    /// let value = words.add(Field::whole(), 1)?;
    /// if let Some(id) = words.id_of(value) {
    ///     let word = words.hold(id).expect("no other thread has it");
    ///     assert_eq!((word.id(), word.load()), (Some(id), 6));
    ///     assert_eq!(words.hold(id).err(), Some(Missed::InUse));
    /// }
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the value is not held.
    pub fn hold(&self, id: u32) -> Result<Held<'_, T>, Missed> {
        // A visit of another thread may hold the value for longer than this one waits for it.
        let _visiting = self.lock_visits();
        let State::Claimed(block, Some(source)) = self.handle.state() else {
            return Err(Missed::NoValue);
        };
        if id >= source.id_count() {
            return Err(Missed::NoValue);
        }
        // SAFETY: the block of this object, whose memory is open for all IDs that were used.
        let shard = unsafe { shard_at::<T>(block.of_id(id)) };
        let mut hold = try_hold(shard)?;
        if source != Source::Atomic {
            // A section that found the shard ready has ended when the fence returns. An error releases
            // the shard.
            fence::all().map_err(|errno| Missed::Refused(Refused { errno }))?;
        }
        hold.announce(block.0);
        Ok(Held { hold, id: Some(id), thread: PhantomData })
    }
}

/// A visit of all values of a [`PerId`]: an iterator over [`Held`] values.
///
/// A value that is held belongs to the visitor: no operation of another thread changes it, and all
/// earlier ones are visible. Threads whose value is held work on extra values meanwhile, which the
/// visit reaches last. At the end, or when it is dropped, all values belong to their IDs again.
///
/// * **Misses**: values that are made, or used by a thread without an ID, for about a second or
///   longer, or held by the calling thread; and those of all IDs if the process has entered a sandbox
///   that refuses `membarrier` since its first use. [`missed`](Visit::missed) counts them.
/// * **Cost**: one fence, about 10 us, for every 64 IDs. Not async-signal-safe.
///
/// ```
/// let words = percid::PerId::new(|| percid::per_id::Word::new(1));
/// words.add(percid::per_id::Field::whole(), 1)?;
/// let sum: i64 = words.visit().map(|word| word.load()).sum();
/// assert_eq!(sum, 2);
/// # Ok::<(), percid::per_id::NoMemory>(())
/// ```
pub struct Visit<'p, T, F = fn() -> T> {
    held: Batch<'p, T>,
    /// The IDs that have not been taken away yet; `None` if all have.
    ids: Option<Ids>,
    extra: *mut Extra<T>,
    missed: usize,
    per_id: PhantomData<&'p PerId<T, F>>,
    _visiting: Option<VisitGuard<'p>>,
}

/// The IDs from `next` on.
#[derive(Debug, Clone, Copy)]
struct Ids {
    block: Block,
    source: Source,
    next: u32,
    end: u32,
}

/// The shards that were taken away and have not been returned by the iterator. Those that are left
/// are released when it is dropped.
struct Batch<'p, T> {
    shards: [Option<Hold<'p, T>>; BATCH],
    first: u32,
    next: usize,
}

impl<T> Batch<'_, T> {
    fn new() -> Self {
        // #[gamma::skip(literal, reason = "an empty batch has no first ID")]
        Batch { shards: [const { None }; BATCH], first: 0, next: BATCH }
    }
}

impl<'p, T: Send + Sync, F> Iterator for Visit<'p, T, F> {
    type Item = Held<'p, T>;

    fn next(&mut self) -> Option<Held<'p, T>> {
        loop {
            while self.held.next < BATCH {
                let index = self.held.next;
                self.held.next += 1;
                if let Some(hold) = self.held.shards[index].take() {
                    let id = Some(self.held.first + index as u32);
                    return Some(Held { hold, id, thread: PhantomData });
                }
            }
            if !self.take_away_next() {
                return self.next_extra();
            }
        }
    }
}

impl<T, F> Visit<'_, T, F> {
    /// Returns the number of values that the visit has missed so far; all of them, if the calling
    /// thread is inside another visit.
    ///
    /// ```
    /// let words = percid::PerId::new(|| percid::per_id::Word::new(1));
    /// words.add(percid::per_id::Field::whole(), 1)?;
    /// let mut visit = words.visit();
    /// let sum: i64 = visit.by_ref().map(|word| word.load()).sum();
    /// assert_eq!((sum, visit.missed()), (2, 0));
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    pub fn missed(&self) -> usize {
        self.missed
    }
}

impl<'p, T: Send + Sync, F> Visit<'p, T, F> {
    /// Returns `true` if the visit has the object's lock; it is empty if the calling thread is inside
    /// another one.
    pub(crate) fn has_lock(&self) -> bool {
        self._visiting.is_some()
    }

    /// Takes the next IDs' shards away. Returns `false` if there are none.
    fn take_away_next(&mut self) -> bool {
        let Some(ids) = &mut self.ids else { return false };
        if ids.next >= ids.end {
            return false;
        }
        let (first, block) = (ids.next, ids.block.0);
        ids.next = ids.end.min(first + BATCH as u32);
        let mut any = false;
        for id in first..ids.next {
            // SAFETY: the block of this object, whose memory is open for all IDs that were used.
            let shard = unsafe { shard_at(ids.block.of_id(id)) };
            let hold = hold(shard, &mut self.missed);
            any |= hold.is_some();
            self.held.shards[(id - first) as usize] = hold;
        }
        (self.held.first, self.held.next) = (first, 0);
        // A section that found a shard ready before it was held has committed or been aborted when
        // the fence returns.
        if any && ids.source != Source::Atomic && fence::all().is_err() {
            self.missed += self.held.shards.iter().flatten().count();
            self.held = Batch::new();
        }
        let held = self.held.shards.iter_mut().flatten();
        held.for_each(|hold| hold.announce(block));
        true
    }

    fn next_extra(&mut self) -> Option<Held<'p, T>> {
        while let Some(extra) = NonNull::new(self.extra) {
            // SAFETY: extras are not moved or unmapped until the object is dropped.
            let extra = unsafe { extra.as_ref() };
            self.extra = extra.link.next;
            if let Some(hold) = hold(&extra.shard, &mut self.missed) {
                return Some(Held { hold, id: None, thread: PhantomData });
            }
        }
        None
    }
}

/// The reason why the value of an ID is not held.
///
/// ```
/// use percid::per_id::Missed;
///
/// assert_eq!(Missed::NoValue.to_string(), "the ID has no value");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missed {
    /// The ID has not used a value, or there is no such ID.
    NoValue,
    /// The calling thread holds or makes the value, or another thread has done so for about a
    /// second.
    InUse,
    /// The kernel refuses the fence.
    Refused(Refused),
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::NoValue => f.write_str("the ID has no value"),
            Missed::InUse => f.write_str("a thread holds or makes the value"),
            Missed::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for Missed {}

/// Holds a shard that has a value. Counts one that has a value and is not held, or will have one.
pub(super) fn hold<'s, T>(shard: &'s Shard<T>, missed: &mut usize) -> Option<Hold<'s, T>> {
    let hold = try_hold(shard);
    *missed += usize::from(matches!(hold, Err(Missed::InUse)));
    hold.ok()
}

/// Holds a shard that has a value. Waits for a thread that holds it or makes the value, but not
/// forever, and not for the calling thread.
fn try_hold<T>(shard: &Shard<T>) -> Result<Hold<'_, T>, Missed> {
    let mut backoff = Backoff::default();
    loop {
        match shard.state() {
            NONE => return Err(Missed::NoValue),
            READY => {
                if let Some(hold) = shard.try_hold() {
                    return Ok(hold);
                }
            }
            own if own == making() || own == thread::token() as i64 => return Err(Missed::InUse),
            _ if backoff.is_exhausted() => return Err(Missed::InUse),
            _ => backoff.wait(),
        }
    }
}

impl<T, F> fmt::Debug for Visit<'_, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").field("ids", &self.ids).finish_non_exhaustive()
    }
}
