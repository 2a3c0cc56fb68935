//! Values that C programs take and release by separate calls, and visits for C functions, which may
//! end the thread or jump, and must not do so across percid's frames.

use std::ptr::NonNull;

use super::Local;
use super::lock::READY;
use super::shard::{LocalGuard, Shard};
use super::visit::{HeldByCaller, Visit};
use crate::sys::race_detector;

impl<T: Send, F: Fn() -> T> Local<T, F> {
    /// Takes a value until the guard is dropped; `None` if there is no memory.
    #[doc(hidden)]
    #[inline(always)]
    pub fn lock(&self) -> Option<LocalGuard<'_, T>> {
        self.hold_shard().map(LocalGuard)
    }

    /// Begins a visit that returns one value after the other.
    ///
    /// # Errors
    ///
    /// The calling thread is inside a closure or a visit of this object.
    #[doc(hidden)]
    pub fn visit(&self) -> Result<Visit<'_, T, F>, HeldByCaller> {
        self.begin_visit()
    }
}

impl<T: Send> Local<T> {
    /// Takes a value, which belongs to the caller until it is [released](Local::release); `None` if
    /// there is no memory. Until then visits wait.
    #[doc(hidden)]
    pub fn acquire(&self) -> Option<NonNull<T>> {
        let held = std::mem::ManuallyDrop::new(self.hold_shard()?);
        // SAFETY: shards are not at address zero.
        Some(unsafe { NonNull::new_unchecked(&raw mut (*held.shard.as_ptr()).value) })
    }

    /// Releases a value.
    ///
    /// # Safety
    ///
    /// `value` must be a result of [`acquire`](Local::acquire) that was not released since.
    #[doc(hidden)]
    pub unsafe fn release(value: NonNull<T>) {
        race_detector::release(Self::shard_of(value).addr());
        // SAFETY: the caller guarantees that the value lies in a shard that it holds.
        unsafe { (*Self::shard_of(value)).lock.release(READY) };
    }

    /// Returns the lock of a value that was [acquired](Local::acquire).
    #[doc(hidden)]
    pub fn lock_of(value: NonNull<T>) -> *mut i64 {
        Self::shard_of(value).cast()
    }

    fn shard_of(value: NonNull<T>) -> *mut Shard<T> {
        value.as_ptr().wrapping_byte_sub(std::mem::offset_of!(Shard<T>, value)).cast()
    }
}
