//! Waiting for the operations that are running.
//!
//! # Proof
//!
//! Let the caller store something, and then settle. An operation is either a section, or it is done
//! on a shard that its thread holds. Sections that were running have been done or aborted when the
//! fence returns, and later ones see what was stored. The other operations hold their shard, then
//! execute [`fence::light`], then read their fields. The pair of fences guarantees one of two:
//! the operation sees what the caller has stored, or the caller sees the shard held, or new, in what
//! it loads after [`fence::all`]. It waits until such a shard has been released once. An operation
//! that holds the shard later was not seen by that load, so it sees what was stored.

use std::fmt;

use super::PerId;
use super::shard::{READY, Shard, shard_at};
use crate::backoff::Backoff;
use crate::fence::{self, Refused};
use crate::handle::State;
use crate::id::Source;
use crate::sys::thread;

/// The reason why operations may still be running.
///
/// ```
/// use percid::{PerId, per_id::{Unsettled, Word}};
///
/// let words = PerId::new(|| Word::new(0));
/// words.add(percid::per_id::Field::whole(), 1).expect("memory");
/// let held: Vec<_> = words.visit().collect();
/// let holds = held.iter().any(|word| word.id().is_none());
/// println!("a value without an ID is held: {holds}");
/// drop(held);
/// assert_eq!(words.settle(), Ok(()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unsettled {
    /// The kernel refuses the fence.
    Refused(Refused),
    /// The calling thread holds a value, or another thread has held one for about a second.
    Held,
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsettled::Refused(refused) => refused.fmt(f),
            Unsettled::Held => f.write_str("a thread holds a value"),
        }
    }
}

impl std::error::Error for Unsettled {}

impl<T: Send + Sync, F> PerId<T, F> {
    /// Waits for the operations on this object that are running. When it returns, every operation
    /// that may have read a field before the call has ended; what it stored is visible to the
    /// caller, and later operations see what the caller stored before.
    ///
    /// So memory to which no field leads any more is used by no operation. It works with every
    /// source, as [`fence::all`](crate::fence::all) alone does not. Visits hold values: it waits for
    /// those of other threads to release them.
    ///
    /// Thread-safe; in a signal handler it returns [`Unsettled::Held`] if that has interrupted an
    /// operation that holds a value. The cost is that of the fence, about 10 us, and a load for
    /// each value without an ID; with [`Source::Atomic`] for each value.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Field, Word}};
    ///
    /// static LIMIT: PerId<Word> = PerId::new(|| Word::new(0));
    ///
    /// LIMIT.add(Field::whole(), 1).expect("memory");
    /// assert_eq!(LIMIT.settle(), Ok(()));
    /// ```
    ///
    /// # Errors
    ///
    /// Operations may still be running, and the reason.
    pub fn settle(&self) -> Result<(), Unsettled> {
        fence::all().map_err(Unsettled::Refused)?;
        if let State::Claimed(block, Some(Source::Atomic)) = self.handle.state() {
            for id in 0..Source::Atomic.id_count() {
                // SAFETY: the block of this object; the memory of IDs that were used is open.
                wait_for(unsafe { shard_at::<T>(block.of_id(id)) })?;
            }
        }
        self.extras().try_for_each(wait_for)
    }
}

/// Waits until a shard is not held, or has been released.
fn wait_for<T>(shard: &Shard<T>) -> Result<(), Unsettled> {
    let holder = shard.state();
    let mut backoff = Backoff::default();
    // A value that is being made has no operation yet.
    while holder > READY && shard.state_acquired() == holder {
        if holder == thread::token() as i64 || backoff.is_exhausted() {
            return Err(Unsettled::Held);
        }
        backoff.wait();
    }
    Ok(())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{Arc, mpsc};
    use std::thread as threads;

    use super::*;
    use crate::per_id::{Field, Word};
    use crate::sys::steps::{self, Fence, Step};

    fn sources() -> impl Iterator<Item = (Source, PerId<Word>)> {
        let new: fn() -> Word = || Word::new(0);
        let made = move |source| Some((source, PerId::with_source(source, new).ok()?));
        Source::ALL.iter().copied().filter_map(made)
    }

    /// Makes a value that belongs to no ID.
    fn make_extra(words: &PerId<Word>) {
        let held: Vec<_> = words.visit().collect();
        words.add(Field::whole(), 1).expect("memory");
        drop(held);
    }

    #[test]
    fn one_fence_is_enough_whatever_the_number_of_values() {
        for (source, words) in sources() {
            words.add(Field::whole(), 1).expect("memory");
            make_extra(&words);
            let fences = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&fences);
            let _watching = steps::watch(move |step| {
                assert_ne!(step, Step::Wait, "nothing is held");
                (step == Step::Membarrier(Fence::OfAll)).then(|| counted.fetch_add(1, SeqCst));
                None
            });
            assert_eq!(words.settle(), Ok(()), "{source}");
            assert_eq!(fences.load(SeqCst), usize::from(fence::is_asymmetric()), "{source}");
        }
    }

    /// Another thread holds all values, and releases them when this one waits.
    #[test]
    fn values_that_are_held_are_waited_for() {
        for (source, words) in sources() {
            words.add(Field::whole(), 1).expect("memory");
            make_extra(&words);
            let (hold, held) = mpsc::channel();
            let (wait, waiting) = mpsc::channel();
            let released = AtomicUsize::new(0);
            let (words, released) = (&words, &released);
            threads::scope(|scope| {
                scope.spawn(move || {
                    let all: Vec<_> = words.visit().collect();
                    hold.send(all.len()).expect("the other thread");
                    waiting.recv().expect("the other thread");
                    released.store(all.len(), SeqCst);
                });
                assert!(held.recv().expect("the other thread") >= 2);
                let _watching = steps::watch(move |step| {
                    (step == Step::Wait).then(|| _ = wait.send(()));
                    None
                });
                assert_eq!(words.settle(), Ok(()), "{source}");
                assert!(released.load(SeqCst) >= 2, "{source}");
            });
        }
    }

    #[test]
    fn what_this_thread_holds_and_what_is_refused_is_an_error() {
        for (source, words) in sources() {
            words.add(Field::whole(), 1).expect("memory");
            make_extra(&words);
            let held: Vec<_> = words.visit().collect();
            assert_eq!(words.settle(), Err(Unsettled::Held), "{source}");
            drop(held);
            let watching = steps::watch(|step| {
                (step == Step::Membarrier(Fence::OfAll)).then_some(Err(steps::REFUSED))
            });
            let refused = fence::is_asymmetric()
                .then_some(Unsettled::Refused(Refused { errno: steps::REFUSED }));
            assert_eq!(words.settle().err(), refused, "{source}");
            drop(watching);
        }
        assert_eq!(PerId::new(|| Word::new(0)).settle(), Ok(()));
    }
}
