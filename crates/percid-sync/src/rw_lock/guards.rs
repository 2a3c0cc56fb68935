//! The guards of a lock: access to its data until they are dropped.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::raw::RawRwLock;

/// Makes a guard stay on its thread, as the guards of the standard library do: programs written for
/// those go on to compile, and poisoning is about the thread that locked. The lock itself does not
/// need it: its sums do not care on which thread a reader leaves.
type OnItsThread = PhantomData<*const ()>;

/// Shared access to the data of a [`RwLock`](crate::RwLock).
///
/// ```
/// let lock = percid_sync::RwLock::new(5);
/// let guard: percid_sync::RwLockReadGuard<'_, i32> = lock.read().unwrap();
/// assert_eq!(*guard, 5);
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'l, T: ?Sized> {
    raw: &'l RawRwLock,
    data: NonNull<T>,
    lifetime: PhantomData<&'l T>,
    thread: OnItsThread,
}

// SAFETY: a shared guard gives only `&T`.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}

impl<'l, T: ?Sized> RwLockReadGuard<'l, T> {
    /// Creates the guard of a lock with its data.
    ///
    /// # Safety
    ///
    /// The thread has the lock for reading, and the lock guards the data, for `'l`.
    #[inline(always)]
    pub(super) unsafe fn new(raw: &'l RawRwLock, data: NonNull<T>) -> Self {
        RwLockReadGuard { raw, data, lifetime: PhantomData, thread: PhantomData }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard's reader is inside, so no writer is (the proof is in `raw`).
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.raw.read_unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Exclusive access to the data of a [`RwLock`](crate::RwLock).
///
/// ```
/// let lock = percid_sync::RwLock::new(5);
/// let mut guard: percid_sync::RwLockWriteGuard<'_, i32> = lock.write().unwrap();
/// *guard = 6;
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'l, T: ?Sized> {
    raw: &'l RawRwLock,
    data: NonNull<T>,
    lifetime: PhantomData<&'l mut T>,
    /// `true` if the thread was panicking when it locked.
    panicking: bool,
    thread: OnItsThread,
}

// SAFETY: a shared guard gives only `&T`.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<'l, T: ?Sized> RwLockWriteGuard<'l, T> {
    /// Creates the guard of a lock with its data.
    ///
    /// # Safety
    ///
    /// The thread has the lock for writing, and the lock guards the data, for `'l`.
    pub(super) unsafe fn new(raw: &'l RawRwLock, data: NonNull<T>) -> Self {
        let panicking = std::thread::panicking();
        let (lifetime, thread) = (PhantomData, PhantomData);
        RwLockWriteGuard { raw, data, lifetime, panicking, thread }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the writer has the lock alone.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the writer has the lock alone, and the guard is borrowed mutably.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        if !self.panicking && std::thread::panicking() {
            self.raw.poison(true);
        }
        self.raw.write_unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
