//! Typed pools.

use std::fmt;

use super::pooled::Pooled;
use crate::id::{Source, SourceError};
use crate::stack::Stack;

/// A pool of objects of type `T`, which `make` creates. Every CPU has some of its own.
///
/// [`get`](Pool::get) lends an object that was used on this CPU before and is still in its cache,
/// or makes a new one; dropping the loan puts it back *as it is*.
///
/// ```
/// static BUFFERS: percid::Pool<Vec<u8>> = percid::Pool::new(|| Vec::with_capacity(4096), 64);
///
/// {
///     let mut buffer = BUFFERS.get();
///     buffer.clear(); // as its last user left it
///     buffer.extend_from_slice(b"hello");
/// } // goes back
/// assert_eq!(BUFFERS.drain(), 1);
/// ```
///
/// The compiler guarantees that a loan cannot be returned twice, to another pool, or to one that is
/// gone.
///
/// ```compile_fail
/// let pool: percid::Pool<u64> = percid::Pool::new(|| 0, 64);
/// let loan = pool.get();
/// drop(loan);
/// drop(loan); // used after move
/// ```
///
/// ```compile_fail
/// let loan = {
///     let pool: percid::Pool<u64> = percid::Pool::new(|| 0, 64);
///     pool.get() // outlives the pool
/// };
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once, and a loan may be
///   dropped by another thread than the one it was made for. No object is lent to two threads at a
///   time.
/// * **Bounds**: every ID keeps up to `capacity` objects, and the pool in addition as many as were
///   ever lent at the same time. [`bounded`](Pool::bounded) limits that.
/// * **Signals**: `get` and dropping a loan take no lock and preserve `errno`. But if `make` or
///   `T`'s destructor are called (no idle object, no room), they must be async-signal-safe, and the
///   boxes come from the global allocator, which is not.
/// * **Async**: a loan may be held across `.await`, and its task may move to another thread. A
///   spawned task that must be `'static` needs a pool in a `static`, or
///   [`get_owned`](Pool::get_owned).
/// * **Fork**: the same as for [`Stack`].
/// * **Memory**: a box for each object; for the rest see [`Stack`]. Dropping the pool drops the
///   idle objects.
/// * **Cost**: `get` and dropping the loan are one pop and one push of a [`Stack`]. Creating a pool
///   is a constant, whatever the number of CPUs.
pub struct Pool<T, F = fn() -> T> {
    pub(crate) idle: Stack<Box<T>>,
    make: F,
}

impl<T, F: Fn() -> T> Pool<T, F> {
    /// Creates an empty pool whose objects are made by `make`, with `capacity` idle ones for every
    /// ID and any number that IDs share. It will use the source of the process (see
    /// [`init`](crate::init)).
    ///
    /// ```
    /// use percid::Pool;
    ///
    /// static BUFFERS: Pool<Vec<u8>> = Pool::new(Vec::new, 64);
    /// BUFFERS.get().push(1);
    /// ```
    ///
    /// A closure may capture data for the objects. Its type is then part of the pool's type; a
    /// structure that contains the pool names it as `Pool<T, Box<dyn Fn() -> T + Send + Sync>>`, or
    /// takes it as a parameter.
    ///
    /// ```
    /// use percid::Pool;
    ///
    /// let capacity = std::env::args().count() * 4096;
    /// let buffers = Pool::new(move || Vec::<u8>::with_capacity(capacity), 64);
    /// assert!(buffers.get().capacity() >= capacity);
    /// ```
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151 (131 071 on 32 bits).
    #[must_use]
    pub const fn new(make: F, capacity: u32) -> Pool<T, F> {
        Pool { idle: Stack::new(capacity), make }
    }

    /// Creates a pool like [`new`](Pool::new) in which IDs share at most about `shared` idle
    /// objects: objects that are returned beyond that are dropped.
    ///
    /// ```
    /// use percid::Pool;
    ///
    /// // 64 idle buffers for each ID, and 1000 that IDs share.
    /// static BUFFERS: Pool<Vec<u8>> = Pool::bounded(Vec::new, 64, 1000);
    /// BUFFERS.get().push(1);
    /// ```
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151 (131 071 on 32 bits).
    #[must_use]
    pub const fn bounded(make: F, capacity: u32, shared: usize) -> Pool<T, F> {
        Pool { idle: Stack::bounded(capacity, shared), make }
    }

    /// Creates a pool like [`new`](Pool::new) that uses `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid::{Pool, Source};
    ///
    /// let buffers = Pool::with_source(Source::Atomic, Vec::<u8>::new, 64)?;
    /// buffers.get().push(1);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used, or not with the fence that a drain needs.
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151 (131 071 on 32 bits).
    pub fn with_source(source: Source, make: F, capacity: u32) -> Result<Pool<T, F>, SourceError> {
        Ok(Pool { idle: Stack::with_source(source, capacity)?, make })
    }
}

impl<T: Send, F: Fn() -> T> Pool<T, F> {
    /// Lends an object: an idle one as it was returned, or a new one. If the loan must outlive the
    /// borrow of the pool, see [`get_owned`](Pool::get_owned).
    ///
    /// ```
    /// let buffers = percid::Pool::new(Vec::<u8>::new, 64);
    /// let mut buffer = buffers.get();
    /// buffer.extend_from_slice(b"hello");
    /// assert_eq!(buffer.len(), 5);
    /// ```
    #[inline(always)]
    pub fn get(&self) -> Pooled<'_, T> {
        Pooled::new(self.take_or_make(), &self.idle)
    }

    /// Returns an idle object or a new one.
    #[inline(always)]
    pub(super) fn take_or_make(&self) -> Box<T> {
        self.idle.pop().unwrap_or_else(|| self.make_new())
    }

    #[cold]
    #[inline(never)]
    fn make_new(&self) -> Box<T> {
        Box::new((self.make)())
    }
}

impl<T: Send, F> Pool<T, F> {
    /// Drops all idle objects, of every ID and those that IDs share, and returns their number. For
    /// objects that it may miss, see [`Stack`].
    ///
    /// ```
    /// let buffers = percid::Pool::new(Vec::<u8>::new, 64);
    /// drop((buffers.get(), buffers.get()));
    /// assert_eq!(buffers.drain(), 2);
    /// ```
    pub fn drain(&self) -> usize {
        self.idle.drain(drop)
    }
}

impl<T, F> fmt::Debug for Pool<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("idle", &self.idle).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn an_object_is_used_again_as_it_was() {
        let pool = Pool::new(|| 0u64, 64);
        // The thread stays on the same CPU except at the end of a time slice, which comes after
        // hundreds of attempts. If it were every second attempt, all would fail once in 2^100.
        let again = (0..100).any(|_| {
            *pool.get() = 7;
            *pool.get() == 7
        });
        assert!(again && pool.drain() > 0);
        assert_eq!(pool.drain(), 0);
        assert_eq!(*pool.get(), 0);
    }

    #[test]
    fn an_object_that_was_taken_out_does_not_come_back() {
        let pool = Pool::new(|| 1u64, 64);
        assert_eq!(*pool.get().into_box(), 1);
        assert_eq!(pool.drain(), 0);
    }

    #[test]
    fn no_object_is_lent_to_two() {
        const LOANS: usize = if cfg!(miri) { 100 } else { 50_000 };
        const DRAINS: usize = if cfg!(miri) { 10 } else { 100 };
        static MADE: AtomicUsize = AtomicUsize::new(0);
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            MADE.store(0, Relaxed);
            let make = || {
                MADE.fetch_add(1, Relaxed);
                AtomicUsize::new(0)
            };
            let pool = Pool::with_source(source, make, 8).expect("an available source");
            let drained = std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..LOANS {
                            let loans = [pool.get(), pool.get()];
                            for loan in &loans {
                                assert_eq!(loan.fetch_add(1, Relaxed), 0, "{source}");
                            }
                            loans.iter().for_each(|loan| loan.store(0, Relaxed));
                        }
                    });
                }
                (0..DRAINS).map(|_| pool.drain()).sum::<usize>()
            });
            assert_eq!(drained + pool.drain(), MADE.load(Relaxed), "{source}");
        }
    }

    #[test]
    fn a_closure_may_capture() {
        let made = AtomicUsize::new(0);
        let make = || made.fetch_add(1, Relaxed);
        for pool in [
            Ok(Pool::new(make, 8)),
            Ok(Pool::bounded(make, 8, 8)),
            Pool::with_source(Source::Atomic, make, 8),
        ] {
            let pool = pool.expect("an available source");
            let before = made.load(Relaxed);
            assert_eq!((*pool.get(), made.load(Relaxed)), (before, before + 1));
        }
    }

    #[test]
    fn a_bounded_pool_drops_what_is_too_much() {
        let pool = Pool::bounded(|| (), 2, 0);
        let loans: Vec<_> = (0..1000).map(|_| pool.get()).collect();
        drop(loans);
        assert!(pool.drain() <= 2 * 64);
    }
}
