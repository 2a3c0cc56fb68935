//! A number of units that is never exceeded: [`Budget`].
//!
//! # Protocol and proof
//!
//! The units that are not charged lie in two places: `left`, shared by all, and a credit for each
//! ID. A charge subtracts from the credit of its ID, by a store that is done only if the credit still
//! has the value that was read, or from `left`. A batch is subtracted from `left` before it is added
//! to a credit, and taken out of a credit before it is added to `left`. So the units in both places,
//! and those charged, add up to the limit or less at any time. No place is ever below zero, hence no
//! more than the limit is charged. No fence takes part in this: without one a visit takes nothing,
//! and charges are refused too early.
//!
//! Subtracting first and undoing what made a credit negative is wrong, though it needs one section
//! only: a thread that was moved gives the units back to another ID, where others charge them while
//! the first credit is still negative. The model `sync_budget` of percid's verification shows it.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
    fence as barrier,
};
use std::sync::{Mutex, PoisonError};

use percid::id::SourceError;
use percid::per_id::{Field, Unchanged, Word};
use percid::{PerId, Source};

use crate::guess::{Try, with_guess};

/// The share of the limit that an ID takes at once, unless the budget is created with another
/// batch: the limit divided by this.
const BATCHES: u64 = 1024;
/// The share of what is left that an ID takes at most: that divided by this. So batches shrink near
/// the limit.
const SHARE: i64 = 16;

thread_local! {
    /// The credit that an ID probably has.
    static GUESS: Cell<i64> = const { Cell::new(0) };
}

/// A number of units, such as bytes of memory, that is charged and released by many threads and
/// never exceeded, not by one unit.
///
/// ```
/// use percid_sync::Budget;
///
/// static MEMORY: Budget = Budget::new(1 << 30);
///
/// MEMORY.try_charge(4096)?;
/// assert_eq!(MEMORY.exact(), 4096);
/// MEMORY.release(4096);
/// # Ok::<(), percid_sync::Exceeded>(())
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. Units may be released
///   by another thread than the one that charged them.
/// * **Exactness**: the units that are charged and not released are never more than the limit. A
///   charge is refused if there is no room for it, or if other threads move credits at that moment.
/// * **Waiting**: nothing waits as long as there is room. A charge without room waits for another
///   thread that collects credits.
/// * **Signals**: not in a signal handler.
/// * **Fork**: the child has a copy, in which all units are still charged.
/// * **Memory**: the size of the object, plus 16 bytes for every ID that used it. If there is none
///   for an ID, its threads charge the shared number.
/// * **Cost**: as long as batches are large, a charge is one conditional store in a section, and a
///   second one if the thread used another budget in between; a release is one addition. Near the
///   limit both are an atomic operation on a shared word. A charge without room runs a fence of all
///   CPUs, about 10 us for every 64 IDs, if some ID has credit.
pub struct Budget {
    credits: PerId<Word>,
    left: AtomicI64,
    limit: i64,
    batch: i64,
    collecting: Mutex<()>,
}

/// The error of a charge for which there is no room.
///
/// ```
/// use percid_sync::{Budget, Exceeded};
///
/// assert_eq!(Budget::new(5).try_charge(6), Err(Exceeded));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded;

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot charge: the budget has not so many units left")
    }
}

impl std::error::Error for Exceeded {}

impl Budget {
    /// Creates a budget of which nothing is charged. Limits beyond `i64::MAX` are that.
    ///
    /// ```
    /// static CONNECTIONS: percid_sync::Budget = percid_sync::Budget::new(10_000);
    /// ```
    #[must_use]
    pub const fn new(limit: u64) -> Budget {
        Budget::with_batch(limit, limit / BATCHES)
    }

    /// Creates a budget of which each ID takes so many units at once. Larger batches are faster, and
    /// [`approximate`](Budget::approximate) is less exact.
    ///
    /// ```
    /// let budget = percid_sync::Budget::with_batch(1000, 0);
    /// budget.try_charge(1)?;
    /// assert_eq!(budget.approximate(), 1, "exact without batches");
    /// # Ok::<(), percid_sync::Exceeded>(())
    /// ```
    #[must_use]
    pub const fn with_batch(limit: u64, batch: u64) -> Budget {
        Budget::with_credits(PerId::new(no_credit), limit, batch)
    }

    /// Creates a budget whose credits are kept by `source`, whatever the process has chosen.
    ///
    /// ```
    /// let budget = percid_sync::Budget::with_source(percid::Source::Atomic, 1000, 10)?;
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source, limit: u64, batch: u64) -> Result<Budget, SourceError> {
        let credits = PerId::with_source(source, no_credit as fn() -> Word)?;
        Ok(Budget::with_credits(credits, limit, batch))
    }

    const fn with_credits(credits: PerId<Word>, limit: u64, batch: u64) -> Budget {
        let limit = if limit > i64::MAX as u64 { i64::MAX } else { limit as i64 };
        // Three batches for each ID must not overflow.
        let batch = if batch > 1 << 40 { 1 << 40 } else { batch as i64 };
        Budget { credits, left: AtomicI64::new(limit), limit, batch, collecting: Mutex::new(()) }
    }

    /// Charges units.
    ///
    /// ```
    /// let budget = percid_sync::Budget::new(5);
    /// assert!(budget.try_charge(5).is_ok());
    /// assert!(budget.try_charge(1).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// There is no room; nothing was charged.
    #[inline]
    pub fn try_charge(&self, units: u64) -> Result<(), Exceeded> {
        let units = i64::try_from(units).map_err(|_| Exceeded)?;
        if self.charge_credit(units) { Ok(()) } else { self.charge_left(units) }
    }

    /// Charges the credit of the running thread's ID. Returns `true` if it did.
    #[inline(always)]
    fn charge_credit(&self, units: i64) -> bool {
        let done = with_guess(&GUESS, |credit| {
            // A guess that is too small is not believed: the section finds the credit.
            let expected = credit.max(units);
            match self.credits.store_if(Field::whole(), expected, expected - units) {
                Ok(_) => Try::Done(true, expected - units),
                Err(Unchanged::Differs(found)) if found >= units => Try::Differs(found),
                Err(Unchanged::Differs(found)) => Try::Done(false, found),
                Err(_) => Try::Done(false, 0),
            }
        });
        done == Some(true)
    }

    #[cold]
    #[inline(never)]
    fn charge_left(&self, units: i64) -> Result<(), Exceeded> {
        if self.charge_shared(units) || self.collect_for(units) {
            return Ok(());
        }
        Err(Exceeded)
    }

    /// Charges the shared number, and takes a batch for the running thread's ID. Returns `false` if
    /// not so many are left.
    fn charge_shared(&self, units: i64) -> bool {
        let mut left = self.left.load(Relaxed);
        loop {
            let Some(rest) = left.checked_sub(units).filter(|&rest| rest >= 0) else {
                return false;
            };
            let batch = self.batch.min(rest / SHARE);
            match self.left.compare_exchange_weak(left, rest - batch, Acquire, Relaxed) {
                Ok(_) => {
                    self.give_credit(batch);
                    return true;
                }
                Err(now) => left = now,
            }
        }
    }

    /// Adds units to the credit of the running thread's ID; to the shared number if it has none.
    fn give_credit(&self, units: i64) {
        if units > 0 {
            match self.credits.add(Field::whole(), units) {
                Ok(credit) => GUESS.set(credit.load()),
                Err(_) => _ = self.left.fetch_add(units, Release),
            }
        }
    }

    /// Collects all credits and charges again. Returns `true` if it did.
    fn collect_for(&self, units: i64) -> bool {
        let _collecting = self.collecting.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have collected meanwhile.
        self.charge_shared(units) || self.collect() && self.charge_shared(units)
    }

    /// Moves all credits to the shared number. Returns `false` if there was none.
    fn collect(&self) -> bool {
        if self.credit() == 0 {
            return false;
        }
        for word in self.credits.visit() {
            let credit = word.load();
            word.store(0);
            self.left.fetch_add(credit, Release);
        }
        true
    }

    /// Returns the sum of all credits.
    fn credit(&self) -> i64 {
        self.credits.iter().map(|(_, word)| word.load()).sum()
    }

    /// Releases units that were charged.
    ///
    /// Releasing units that were not charged raises the limit by them.
    ///
    /// ```
    /// let budget = percid_sync::Budget::new(5);
    /// budget.try_charge(5)?;
    /// budget.release(2);
    /// assert!(budget.try_charge(2).is_ok());
    /// # Ok::<(), percid_sync::Exceeded>(())
    /// ```
    #[inline]
    pub fn release(&self, units: u64) {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        // Near the limit others need them.
        let near = self.left.load(Relaxed) < SHARE * self.batch;
        if units > self.batch || near {
            self.left.fetch_add(units, Release);
            return;
        }
        match self.credits.add(Field::whole(), units) {
            Ok(credit) => {
                let credit = credit.load();
                GUESS.set(credit);
                if credit > 2 * self.batch {
                    self.return_credit();
                }
            }
            Err(_) => _ = self.left.fetch_add(units, Release),
        }
    }

    /// Moves a batch of the credit of the running thread's ID to the shared number.
    #[cold]
    #[inline(never)]
    fn return_credit(&self) {
        if self.charge_credit(self.batch) {
            self.left.fetch_add(self.batch, Release);
        }
    }

    /// Returns the limit.
    ///
    /// ```
    /// assert_eq!(percid_sync::Budget::new(5).limit(), 5);
    /// ```
    pub fn limit(&self) -> u64 {
        self.limit as u64
    }

    /// Returns the units that are charged or lie in credits: one load. It is never less than what is
    /// charged (except for releases under way), and more by three batches at most for every ID.
    ///
    /// ```
    /// let budget = percid_sync::Budget::new(5);
    /// budget.try_charge(3)?;
    /// assert!((3..=5).contains(&budget.approximate()));
    /// # Ok::<(), percid_sync::Exceeded>(())
    /// ```
    #[inline]
    pub fn approximate(&self) -> u64 {
        u64::try_from(self.limit - self.left.load(Relaxed)).unwrap_or(0)
    }

    /// Returns the units that are charged: one load for every ID. It is exact if nothing is charged
    /// or released at the same time; each of those may be contained or not, and a batch that is
    /// moved counts as charged.
    ///
    /// ```
    /// let budget = percid_sync::Budget::new(1 << 20);
    /// budget.try_charge(3)?;
    /// assert_eq!(budget.exact(), 3);
    /// # Ok::<(), percid_sync::Exceeded>(())
    /// ```
    pub fn exact(&self) -> u64 {
        let _collecting = self.collecting.lock().unwrap_or_else(PoisonError::into_inner);
        let credit = self.credit();
        barrier(Acquire);
        u64::try_from(self.limit - self.left.load(Relaxed) - credit).unwrap_or(0)
    }
}

/// Makes a credit.
fn no_credit() -> Word {
    Word::new(0)
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("limit", &self.limit)
            .field("charged", &self.exact())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::thread;

    use super::*;

    fn budgets(limit: u64, batch: u64) -> impl Iterator<Item = Budget> {
        let sources = Source::ALL.iter().copied().filter(|source| source.prepare().is_ok());
        sources.map(move |source| Budget::with_source(source, limit, batch).expect("available"))
    }

    #[test]
    fn exactly_the_limit_can_be_charged() {
        for budget in [(1000, 0), (1000, 10), (1000, 500), (0, 0), (1, 1)]
            .into_iter()
            .flat_map(|(limit, batch)| budgets(limit, batch))
        {
            let charged = (0..2000).filter(|_| budget.try_charge(1).is_ok()).count() as u64;
            assert_eq!((charged, budget.exact()), (budget.limit(), budget.limit()));
            assert_eq!((budget.approximate(), budget.try_charge(1)), (charged, Err(Exceeded)));
            (0..charged).for_each(|_| budget.release(1));
            assert_eq!(budget.exact(), 0);
            assert_eq!(budget.try_charge(charged), Ok(()), "credits are collected");
        }
    }

    #[test]
    fn large_numbers_are_refused_or_limited() {
        let budget = Budget::new(u64::MAX);
        assert_eq!((budget.limit(), budget.try_charge(u64::MAX)), (i64::MAX as u64, Err(Exceeded)));
        budget.try_charge(i64::MAX as u64).expect("all of it");
        assert_eq!(budget.try_charge(1), Err(Exceeded));
        budget.release(i64::MAX as u64);
        assert_eq!(format!("{budget:?}"), "Budget { limit: 9223372036854775807, charged: 0, .. }");
        assert!(Exceeded.to_string().contains("units"));
    }

    #[test]
    fn the_approximation_has_the_stated_error() {
        for budget in budgets(100_000, 100) {
            for round in 0..2000_u64 {
                if round % 3 < 2 {
                    budget.try_charge(7).expect("room")
                } else {
                    budget.release(7)
                }
                let words = budget.credits.iter().count() as u64;
                let (exact, approximate) = (budget.exact(), budget.approximate());
                assert!((exact..=exact + 300 * words).contains(&approximate));
            }
        }
    }

    /// Threads charge all there is: together the limit, and not a unit more.
    #[test]
    fn threads_share_the_limit() {
        const LIMIT: u64 = if cfg!(miri) { 100 } else { 20_000 };
        for budget in budgets(LIMIT, LIMIT / 50) {
            let charged: u64 = thread::scope(|scope| {
                let charge = || (0..).take_while(|_| budget.try_charge(1).is_ok()).count() as u64;
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(charge)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
            });
            assert_eq!((charged, budget.exact()), (LIMIT, LIMIT));
        }
    }

    /// Threads charge and release numbers of all sizes near the limit, which each of them reaches alone:
    /// their sum never exceeds it.
    #[test]
    fn the_limit_is_never_exceeded() {
        const ROUNDS: u64 = if cfg!(miri) { 30 } else { 20_000 };
        for budget in budgets(1000, 20) {
            let (charged, refused) = (AtomicU64::new(0), AtomicBool::new(false));
            thread::scope(|scope| {
                for thread in 0..4 {
                    let (budget, charged, refused) = (&budget, &charged, &refused);
                    let release = |units| {
                        charged.fetch_sub(units, Relaxed);
                        budget.release(units);
                    };
                    scope.spawn(move || {
                        let mut own = std::collections::VecDeque::new();
                        for round in 0..ROUNDS {
                            let units = (round * 7 + thread) % 50;
                            if budget.try_charge(units).is_ok() {
                                let sum = charged.fetch_add(units, Relaxed) + units;
                                assert!(sum <= 1000, "{sum} of 1000 units are charged");
                                own.push_back(units);
                            } else {
                                refused.store(true, Relaxed);
                            }
                            if own.len() > 60 || round % 64 == 0 {
                                release(own.pop_front().unwrap_or(0));
                            }
                        }
                        own.into_iter().for_each(release);
                    });
                }
            });
            assert!(refused.into_inner(), "the limit was reached");
            assert_eq!(budget.exact(), 0);
            assert_eq!(budget.try_charge(1000), Ok(()));
        }
    }
}
