//! A value that is replaced while others read it.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
};

use super::domain::{Domain, NotFenced, ReadGuard};

/// A value that is replaced as a whole, while others read the old one: what a program does with
/// `arc-swap`, without a reference count.
///
/// ```
/// use percid_sync::{Domain, RcuCell};
///
/// static DOMAIN: Domain = Domain::new();
///
/// let addresses = RcuCell::new(&DOMAIN, vec!["one"]);
/// let reading = DOMAIN.read();
/// let seen = addresses.load(&reading);
///
/// addresses.store(vec!["one", "two"]);
/// assert_eq!(seen.len(), 1, "still what it was");
/// assert_eq!(addresses.load(&reading).len(), 2);
/// # drop(reading);
/// ```
///
/// A value lives as long as guards that could see it:
///
/// ```compile_fail
/// # use percid_sync::{Domain, RcuCell};
/// let domain = Domain::new();
/// let cell = RcuCell::new(&domain, 5);
/// let reading = domain.read();
/// let seen = cell.load(&reading);
/// drop(reading);
/// println!("{seen}");
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. A load sees the value
///   of the last store that happens before it, or a later one.
/// * **Waiting**: [`load`](RcuCell::load) does not wait. [`store`](RcuCell::store) waits if the
///   domain's queue is full, [`replace`](RcuCell::replace) until all readers have left.
/// * **Signals**: `load` is async-signal-safe. The other methods are not.
/// * **Fork**: the child has a copy. See [`Domain`] for the readers.
/// * **Memory**: 16 bytes, and a box for the value, and for each old one that waits.
/// * **Cost**: a load is that of a pointer, and a comparison of the domains.
pub struct RcuCell<'d, T> {
    domain: &'d Domain,
    value: AtomicPtr<T>,
    owned: PhantomData<T>,
}

// SAFETY: the cell owns the value, and drops old ones on any thread.
unsafe impl<T: Send + Sync> Send for RcuCell<'_, T> {}
// SAFETY: readers share the value on all threads; threads that replace it own the old one.
unsafe impl<T: Send + Sync> Sync for RcuCell<'_, T> {}

impl<'d, T> RcuCell<'d, T> {
    /// Creates a cell whose readers belong to a domain.
    ///
    /// ```
    /// use percid_sync::{Domain, RcuCell};
    ///
    /// static DOMAIN: Domain = Domain::new();
    /// let cell: RcuCell<'static, u32> = RcuCell::new(&DOMAIN, 5);
    /// ```
    pub fn new(domain: &'d Domain, value: T) -> RcuCell<'d, T> {
        let value = AtomicPtr::new(Box::into_raw(Box::new(value)));
        RcuCell { domain, value, owned: PhantomData }
    }

    /// Returns the value, which stays as it is as long as the guard.
    ///
    /// ```
    /// use percid_sync::{Domain, RcuCell};
    ///
    /// let domain = Domain::new();
    /// let cell = RcuCell::new(&domain, 5);
    /// assert_eq!(*cell.load(&domain.read()), 5);
    /// ```
    ///
    /// # Panics
    ///
    /// If the guard is one of another domain.
    #[inline(always)]
    pub fn load<'g>(&'g self, guard: &'g ReadGuard<'_>) -> &'g T {
        assert!(std::ptr::eq(guard.domain(), self.domain), "the guard of another domain");
        // Acquire: pairs with the exchange of `exchange`.
        // SAFETY: the reader was counted before this load. So a grace period that begins after the
        // value was replaced waits for it (the proof is in `grace`), and the cell is borrowed.
        unsafe { &*self.value.load(Acquire) }
    }

    /// Replaces the value, waits until nobody reads the old one, and returns it.
    ///
    /// ```
    /// use percid_sync::{Domain, RcuCell};
    ///
    /// let domain = Domain::new();
    /// let cell = RcuCell::new(&domain, 5);
    /// assert_eq!(cell.replace(6)?, 5);
    /// # Ok::<(), percid_sync::NotFenced>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The process may not fence. The value was replaced, and the old one is leaked.
    pub fn replace(&self, value: T) -> Result<T, NotFenced> {
        let old = self.exchange(value);
        self.domain.synchronize()?;
        // SAFETY: the old value came from a box, was removed by this thread only, and all readers
        // that could see it have left.
        Ok(*unsafe { Box::from_raw(old.as_ptr()) })
    }

    fn exchange(&self, value: T) -> NonNull<T> {
        // Release: readers see the value as it was made. Acquire: this thread sees the old one so.
        let old = self.value.swap(Box::into_raw(Box::new(value)), AcqRel);
        // SAFETY: a cell always has a value.
        unsafe { NonNull::new_unchecked(old) }
    }
}

/// A value that waits to be dropped.
struct Removed<T>(NonNull<T>);

// SAFETY: the value is this one's alone when it is dropped.
unsafe impl<T: Send> Send for Removed<T> {}

impl<T> Removed<T> {
    /// Drops the value.
    ///
    /// # Safety
    ///
    /// The value came from a box and was removed from its cell, and no reader can see it.
    unsafe fn free(self) {
        // SAFETY: the caller's obligation.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<T: Send + Sync + 'static> RcuCell<'_, T> {
    /// Replaces the value. The old one is dropped when nobody reads it any more: see
    /// [`Domain::defer`].
    ///
    /// ```
    /// use percid_sync::{Domain, RcuCell};
    ///
    /// let domain = Domain::new();
    /// let cell = RcuCell::new(&domain, 5);
    /// cell.store(6);
    /// assert_eq!(*cell.load(&domain.read()), 6);
    /// ```
    pub fn store(&self, value: T) {
        let removed = Removed(self.exchange(value));
        // SAFETY: the value was removed by this thread only, and the domain runs the function when
        // all readers that could see it have left.
        self.domain.defer(move || unsafe { removed.free() });
    }
}

impl<T> Drop for RcuCell<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the value came from a box, and what a reader sees borrows the cell.
        drop(unsafe { Box::from_raw(*self.value.get_mut()) });
    }
}

impl<T: fmt::Debug> fmt::Debug for RcuCell<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RcuCell").field(self.load(&self.domain.read())).finish()
    }
}
