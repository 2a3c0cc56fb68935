//! Counters.

use std::fmt;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use crate::arena::Cell;
use crate::critical;
use crate::id::{self, RESTART_LIMIT, Source, Unavailable, choice};
use crate::shared_slot;
use crate::sys::preserving_errno;

/// A signed 64-bit counter that every CPU updates in memory of its own.
///
/// ```
/// static REQUESTS: percid::Counter = percid::Counter::new();
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| REQUESTS.add(1)));
///     }
/// });
/// assert_eq!(REQUESTS.sum(), 4000);
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. An increment is never
///   lost and never counted twice.
/// * **Signals**: every method is async-signal-safe, also in a handler that interrupts the same method,
///   and leaves `errno` alone. None waits for another thread.
/// * **What a sum may miss**: increments that run at the same time. It contains every increment that
///   *happens before* it, so after joining threads it is exact.
/// * **Overflow**: values wrap around at 64 bits (at 60 bits for a counter beyond the two million that
///   have room for copies).
/// * **Fork**: the child's counter starts with the value the parent had, on memory of its own. In a
///   child of `vfork` no method may be called: it shares the parent's memory without being its thread.
/// * **Memory**: 8 bytes for the handle, and 8 bytes for every ID that used it, page by page. Another 8
///   bytes of the shared slot once anybody needed that.
/// * **Cost**: [`add`](Counter::add) 16 to 19 instructions on x86-64, two of them stores, none locked;
///   with [`Source::Atomic`] a call and one locked instruction. [`sum`](Counter::sum) and
///   [`take`](Counter::take) read one word for every ID ever used, and so does dropping a counter.
///   Creating one is a constant; it claims its memory at first use, by one atomic addition.
/// * **Stack**: the first use in a process or on a CPU takes up to 2 KiB, everything after it less. On an
///   alternate signal stack that comes on top of the kernel's signal frame (3.5 KiB with AVX-512).
pub struct Counter {
    /// The state; see [`State`].
    word: AtomicUsize,
}

/// What a counter's word means. The lower bits tell; cells are aligned to 8 bytes.
#[derive(Debug, Clone, Copy)]
enum State {
    /// Not used yet.
    Unclaimed,
    /// It has memory, and uses this source; `None` while the source is being chosen, when everything
    /// goes to the shared slot.
    Claimed(Cell, Option<Source>),
    /// The arena had no room: the word itself is the counter, 60 bits of it.
    Inline(i64),
}

/// Marks of the sources in a word's lower bits. Two of them are tested one by one on the fast path.
const TABLE: usize = 1;
const KERNEL: usize = 2;
const ATOMIC: usize = 4;
const MARKS: usize = 7;

/// Marks an inline count: the highest bit, which is clear in every user-space address.
const INLINE: usize = 1 << 63;

impl State {
    fn decode(word: usize) -> State {
        if word & INLINE != 0 {
            // The count lies in bits 3 to 62: shift the mark out at the top, then the marks below.
            return State::Inline((word << 1) as i64 >> 4);
        }
        let source = match word & MARKS {
            KERNEL => Some(Source::Kernel),
            TABLE => Some(Source::Table),
            ATOMIC => Some(Source::Atomic),
            _ => None,
        };
        if word == 0 { State::Unclaimed } else { State::Claimed(Cell(word & !MARKS), source) }
    }

    fn encode(self) -> usize {
        match self {
            State::Unclaimed => 0,
            State::Claimed(cell, None) => cell.0,
            State::Claimed(cell, Some(Source::Kernel)) => cell.0 | KERNEL,
            State::Claimed(cell, Some(Source::Table)) => cell.0 | TABLE,
            State::Claimed(cell, Some(Source::Atomic)) => cell.0 | ATOMIC,
            State::Inline(count) => INLINE | ((count as usize) << 4 >> 1),
        }
    }
}

impl Counter {
    /// A counter of value 0 that will use the source of the process (see [`init`](crate::init)).
    pub const fn new() -> Counter {
        Counter { word: AtomicUsize::new(0) }
    }

    /// A counter of value 0 that uses `source`, whatever the process has chosen: for measurements and
    /// tests. Counters of different sources may be used side by side.
    ///
    /// # Errors
    ///
    /// Why the source cannot be used.
    pub fn with_source(source: Source) -> Result<Counter, Unavailable> {
        source.available()?;
        let cell = preserving_errno(Cell::claim).ok_or(Unavailable::NoMemory)?;
        Ok(Counter { word: AtomicUsize::new(State::Claimed(cell, Some(source)).encode()) })
    }

    /// Adds `n`, which may be negative.
    #[inline(always)]
    pub fn add(&self, n: i64) {
        // Acquire: whoever sees the mark of a source sees what its sections read.
        let word = self.word.load(Acquire);
        let added = if word & KERNEL != 0 {
            // SAFETY: a word with this mark is a cell's address plus the mark, and it was stored after
            // the source had been prepared.
            unsafe { critical::add_kernel::<{ -(KERNEL as isize) }>(word, n) }
        } else if word & TABLE != 0 {
            // SAFETY: as above.
            unsafe { critical::add_table::<{ -(TABLE as isize) }>(word, n) }
        } else {
            false
        };
        if !added {
            self.add_slowly(n);
        }
    }

    /// The sum over all IDs.
    pub fn sum(&self) -> i64 {
        match State::decode(self.word.load(Acquire)) {
            State::Unclaimed => 0,
            State::Inline(count) => count,
            State::Claimed(cell, source) => {
                by_id(cell, source).fold(cell.shared_value(), i64::wrapping_add)
            }
        }
    }

    /// The sum over all IDs, which it resets to zero. An increment that runs at the same time is either
    /// contained in the result or in the value that remains: the results of all calls and the last sum
    /// add up to what was added.
    ///
    /// Lock-free: it starts over if another `take`, or an increment without an ID, comes in between.
    pub fn take(&self) -> i64 {
        loop {
            let word = self.word.load(Acquire);
            let taken = match State::decode(word) {
                State::Unclaimed => Some(0),
                State::Inline(count) => self.replace(word, State::Inline(0)).then_some(count),
                State::Claimed(cell, source) => take_claimed(cell, source),
            };
            if let Some(taken) = taken {
                return taken;
            }
        }
    }

    /// What each ID has added, by ID, from 0 to the largest ever used. The rest of
    /// [`sum`](Counter::sum) is in [`shared`](Counter::shared).
    pub fn by_id(&self) -> impl Iterator<Item = i64> + '_ {
        let claimed = match State::decode(self.word.load(Acquire)) {
            State::Claimed(cell, source) => Some((cell, source)),
            State::Unclaimed | State::Inline(_) => None,
        };
        claimed.into_iter().flat_map(|(cell, source)| by_id(cell, source))
    }

    /// What was added without an ID, less what [`take`](Counter::take) has taken.
    pub fn shared(&self) -> i64 {
        match State::decode(self.word.load(Acquire)) {
            State::Unclaimed => 0,
            State::Inline(count) => count,
            State::Claimed(cell, _) => cell.shared_value(),
        }
    }

    /// Everything but the common case: first use, no ID, an aborted section.
    #[cold]
    #[inline(never)]
    fn add_slowly(&self, n: i64) {
        let word = self.word.load(Relaxed);
        if word & ATOMIC != 0 {
            // The common case of this source.
            return add_at_hint(Cell(word - ATOMIC), n);
        }
        preserving_errno(|| {
            loop {
                let word = self.word.load(Acquire);
                let next = match State::decode(word) {
                    State::Unclaimed => self.claim(),
                    State::Inline(count) => {
                        if self.replace(word, State::Inline(count.wrapping_add(n))) {
                            return;
                        }
                        continue;
                    }
                    State::Claimed(cell, Some(source)) => return add_claimed(cell, source, n),
                    State::Claimed(cell, None) => match choice::get() {
                        Some(choice) => State::Claimed(cell, Some(choice.source)),
                        None => return add_shared(cell, n),
                    },
                };
                // A failed exchange means that somebody else took this step; a cell that was claimed
                // for nothing goes back.
                if !self.replace(word, next) {
                    if let (State::Unclaimed, State::Claimed(cell, _)) = (State::decode(word), next)
                    {
                        // SAFETY: the exchange failed, so nobody has seen this cell.
                        unsafe { cell.release() };
                    }
                }
            }
        });
    }

    fn claim(&self) -> State {
        Cell::claim().map_or(State::Inline(0), |cell| State::Claimed(cell, None))
    }

    fn replace(&self, seen: usize, next: State) -> bool {
        self.word.compare_exchange(seen, next.encode(), AcqRel, Relaxed).is_ok()
    }
}

#[cfg(feature = "testing")]
impl Counter {
    /// The word of an ID of this counter's source.
    pub(crate) fn word_of_id(&self, id: u32) -> Option<&std::sync::atomic::AtomicI64> {
        match State::decode(self.word.load(Acquire)) {
            State::Claimed(cell, Some(_)) => Some(cell.of_id(id)),
            _ => None,
        }
    }
}

fn by_id(cell: Cell, source: Option<Source>) -> impl Iterator<Item = i64> {
    let ids = source.map_or(0, Source::ids_seen);
    (0..ids).map(move |id| cell.of_id(id).load(Relaxed))
}

/// Adds through the source, trying a bounded number of times, then to the shared slot.
fn add_claimed(cell: Cell, source: Source, n: i64) {
    if source == Source::Atomic {
        return add_at_hint(cell, n);
    }
    for _ in 0..RESTART_LIMIT {
        if try_once(cell, source, n) {
            return;
        }
        if !source.enter() {
            break;
        }
    }
    add_shared(cell, n);
}

/// Out of line, so that an unrolled loop does not repeat the sections.
#[inline(never)]
fn try_once(cell: Cell, source: Source, n: i64) -> bool {
    match source {
        // SAFETY: the word of a cell that was claimed for this source, which has been prepared.
        Source::Kernel => unsafe { critical::add_kernel::<0>(cell.0, n) },
        // SAFETY: as above.
        Source::Table => unsafe { critical::add_table::<0>(cell.0, n) },
        Source::Atomic => false,
    }
}

fn add_at_hint(cell: Cell, n: i64) {
    match id::atomic::open_hint() {
        Some(hint) => _ = cell.of_id(hint).fetch_add(n, Relaxed),
        None => add_shared(cell, n),
    }
}

fn add_shared(cell: Cell, n: i64) {
    shared_slot::add(cell.shared(), n);
}

/// An empty counter is left alone, so that its shared slot stays untouched.
fn take_claimed(cell: Cell, source: Option<Source>) -> Option<i64> {
    let of_ids = || by_id(cell, source).fold(0, i64::wrapping_add);
    if cell.shared_value() == 0 && of_ids() == 0 {
        return Some(0);
    }
    shared_slot::take(cell.shared(), of_ids)
}

impl Default for Counter {
    fn default() -> Self {
        Counter::new()
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.sum()).finish()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if let State::Claimed(cell, _) = State::decode(*self.word.get_mut()) {
            // SAFETY: `&mut self` proves that no operation on this counter is running or will run, and
            // the word is never looked at again.
            unsafe { cell.release() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_round_trip() {
        for source in [None, Some(Source::Kernel), Some(Source::Table), Some(Source::Atomic)] {
            let word = State::Claimed(Cell(0x7fff_ffff_fff8), source).encode();
            let State::Claimed(cell, decoded) = State::decode(word) else { panic!("{word:x}") };
            assert_eq!((cell.0, decoded), (0x7fff_ffff_fff8, source));
        }
        for count in [0, 1, -1, 1 << 58, -(1 << 58)] {
            let word = State::Inline(count).encode();
            assert_eq!(word & MARKS, 0, "the fast path must not take a count for an address");
            let State::Inline(decoded) = State::decode(word) else { panic!("{word:x}") };
            assert_eq!(decoded, count);
        }
    }

    #[test]
    fn an_inline_counter_counts() {
        let counter = Counter { word: AtomicUsize::new(State::Inline(0).encode()) };
        counter.add(5);
        counter.add(-7);
        assert_eq!((counter.sum(), counter.shared(), counter.by_id().count()), (-2, -2, 0));
        assert_eq!((counter.take(), counter.sum()), (-2, 0));
    }

    #[test]
    fn every_source_counts() {
        for source in Source::ALL.into_iter().filter(|source| source.available().is_ok()) {
            let counter = Counter::with_source(source).expect("an available source");
            (0..1000).for_each(|n| counter.add(n));
            assert_eq!(counter.sum(), 499_500, "{source}");
            assert_eq!(counter.by_id().sum::<i64>() + counter.shared(), 499_500, "{source}");
            assert_eq!(counter.take(), 499_500, "{source}");
            assert_eq!(counter.sum(), 0, "{source}");
            counter.add(-3);
            assert_eq!((counter.take(), counter.take()), (-3, 0), "{source}");
        }
    }

    #[test]
    fn takes_and_increments_add_up() {
        let counter = Counter::new();
        let taken = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| (0..20_000).map(|_| counter.take()).sum::<i64>()))
                .collect();
            for _ in 0..4 {
                scope.spawn(|| (0..100_000).for_each(|_| counter.add(1)));
            }
            takers.into_iter().map(|taker| taker.join().expect("no panic")).sum::<i64>()
        });
        assert_eq!(taken + counter.sum(), 400_000);
    }

    #[test]
    fn a_dropped_counters_memory_is_zeroed_and_reused() {
        let address = |counter: &Counter| counter.word.load(Relaxed) & !MARKS;
        // Other tests claim cells too: until one of ours comes round again.
        let reused = (0..1000).any(|_| {
            let first = Counter::new();
            first.add(41);
            let place = address(&first);
            drop(first);
            let second = Counter::new();
            second.add(1);
            assert_eq!(second.sum(), 1);
            address(&second) == place
        });
        assert!(reused);
    }

    #[test]
    fn an_unused_counter_costs_nothing() {
        let counter = Counter::new();
        assert_eq!((counter.sum(), counter.take(), counter.shared()), (0, 0, 0));
        assert_eq!(counter.by_id().count(), 0);
        assert_eq!(counter.word.load(Relaxed), 0, "no memory was claimed");
    }
}
