//! The memory of a shard, and the guard of the thread that holds it.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use super::lock::{Lock, NONE, READY};
use crate::sys::race_detector;

/// A shard: its lock and its value.
#[repr(C)]
pub(super) struct Shard<T> {
    pub(super) lock: Lock,
    pub(super) value: T,
}

/// A shard that belongs to no ID.
#[repr(C)]
pub(super) struct Extra<T> {
    pub(super) shard: Shard<T>,
    pub(super) next: *mut Extra<T>,
}

pub(super) fn shard_at<T>(address: usize) -> NonNull<Shard<T>> {
    // The address of a shard is never null.
    NonNull::new(ptr::with_exposed_provenance_mut(address)).unwrap_or(NonNull::dangling())
}

/// Drops the value of a shard, if it has one. In a child of `fork`, a value that another thread of
/// the parent was using is not dropped.
///
/// # Safety
///
/// No other thread uses the shard.
pub(super) unsafe fn drop_value<T>(shard: NonNull<Shard<T>>) {
    // SAFETY: the caller guarantees that no other thread uses the shard; if the lock is ready,
    // there is a value.
    unsafe {
        if (*shard.as_ptr()).lock.state() == READY {
            (*shard.as_ptr()).lock.release(NONE);
            (&raw mut (*shard.as_ptr()).value).drop_in_place();
        }
    }
}

/// A shard that the calling thread holds, released when the guard is dropped.
#[derive(Debug)]
pub(super) struct ShardGuard<'l, T> {
    pub(super) shard: NonNull<Shard<T>>,
    /// The new state of the lock: [`NONE`] as long as there is no value.
    pub(super) released: i64,
    pub(super) lent: PhantomData<&'l mut T>,
}

impl<T> ShardGuard<'_, T> {
    /// Returns the value.
    #[inline(always)]
    pub(super) fn value(&mut self) -> &mut T {
        // SAFETY: only this thread uses the shard until the lock is released, and it has a value.
        unsafe { &mut (*self.shard.as_ptr()).value }
    }

    pub(super) fn fill(&mut self, make: Option<&impl Fn() -> T>) {
        // SAFETY: only this thread uses the shard until the lock is released.
        let place = unsafe { &raw mut (*self.shard.as_ptr()).value };
        // SAFETY: as above; there is no value that this would overwrite, and zeros are one where
        // there is no function.
        unsafe {
            match make {
                Some(make) => place.write(make()),
                None => place.write_bytes(0, 1),
            }
        }
        self.released = READY;
    }
}

impl<T> Drop for ShardGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: shards stay mapped as long as the handle.
        unsafe { (*self.shard.as_ptr()).lock.release(self.released) };
    }
}

/// A shard that the calling thread holds, outside the hot path of a Rust program: its release is
/// announced to race detectors. (They see the atomics of a program that is compiled for them.)
#[doc(hidden)]
#[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
#[derive(Debug)]
#[must_use]
pub struct LocalGuard<'l, T>(pub(super) ShardGuard<'l, T>);

impl<T> LocalGuard<'_, T> {
    /// Returns the value.
    #[doc(hidden)]
    #[cfg_attr(not(feature = "capi"), expect(unreachable_pub, reason = "C programs see it"))]
    #[inline(always)]
    pub fn value(&mut self) -> &mut T {
        self.0.value()
    }
}

impl<T> Drop for LocalGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        race_detector::release(self.0.shard.addr().get());
    }
}

/// Announces that the calling thread has taken the lock of a shard.
pub(super) fn announce_acquired<T>(shard: NonNull<Shard<T>>) {
    race_detector::acquire(shard.addr().get());
}
