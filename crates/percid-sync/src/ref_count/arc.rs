//! A value that lives as long as its references.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use percid::Source;
use percid::id::SourceError;

use super::count::RefCount;

/// The value and the number of its references.
struct Inner<T: ?Sized> {
    references: RefCount,
    value: T,
}

/// The first reference to a value that [`Arc`]s share: as long as it exists, they are counted by ID.
/// When it is dropped, their number becomes an atomic one, and the last of them frees the value.
///
/// ```
/// use percid_sync::{Arc, Owner};
///
/// let owner = Owner::new(vec![1, 2, 3]);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         let shared: Arc<Vec<i32>> = owner.share();
///         scope.spawn(move || assert_eq!(shared.clone().len(), 3));
///     }
/// });
/// let last = owner.share();
/// drop(owner);
/// assert_eq!(*last, [1, 2, 3]);
/// ```
///
/// # Contract
///
/// That of [`RefCount`]. Dropping an owner is [`kill`](RefCount::kill). If the process may not fence
/// any more, the value is leaked: then nobody knows which reference is the last.
pub struct Owner<T: Send + Sync> {
    inner: NonNull<Inner<T>>,
    owned: PhantomData<Inner<T>>,
}

/// A reference to a value: what [`std::sync::Arc`] is, counted by ID as long as the [`Owner`]
/// exists.
///
/// ```
/// let owner = percid_sync::Owner::new(5);
/// let shared = owner.share();
/// assert_eq!(*shared.clone(), 5);
/// ```
pub struct Arc<T: Send + Sync> {
    inner: NonNull<Inner<T>>,
    owned: PhantomData<Inner<T>>,
}

// SAFETY: references on several threads share the value, and any thread may drop it.
unsafe impl<T: Send + Sync> Send for Owner<T> {}
// SAFETY: as above; a shared owner makes references for any thread.
unsafe impl<T: Send + Sync> Sync for Owner<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T: Send + Sync> Owner<T> {
    /// Creates a value with its first reference.
    ///
    /// ```
    /// assert_eq!(*percid_sync::Owner::new(5), 5);
    /// ```
    pub fn new(value: T) -> Owner<T> {
        Owner::with_references(RefCount::new(), value)
    }

    /// Creates a value whose references are counted by `source`, whatever the process has chosen.
    ///
    /// ```
    /// let owner = percid_sync::Owner::with_source(percid::Source::Atomic, 5)?;
    /// assert_eq!(*owner.share(), 5);
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source, value: T) -> Result<Owner<T>, SourceError> {
        Ok(Owner::with_references(RefCount::with_source(source)?, value))
    }

    fn with_references(references: RefCount, value: T) -> Owner<T> {
        let inner = NonNull::from(Box::leak(Box::new(Inner { references, value })));
        Owner { inner, owned: PhantomData }
    }

    /// Returns another reference.
    ///
    /// ```
    /// let owner = percid_sync::Owner::new(5);
    /// assert_eq!(*owner.share(), 5);
    /// ```
    #[inline]
    pub fn share(&self) -> Arc<T> {
        self.inner().references.get();
        Arc { inner: self.inner, owned: PhantomData }
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: the value lives at least as long as this reference.
        unsafe { self.inner.as_ref() }
    }
}

impl<T: Send + Sync> Arc<T> {
    /// Returns `true` if both refer to the same value.
    ///
    /// ```
    /// let owner = percid_sync::Owner::new(5);
    /// assert!(percid_sync::Arc::ptr_eq(&owner.share(), &owner.share()));
    /// ```
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::ptr::addr_eq(this.inner.as_ptr(), other.inner.as_ptr())
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: the value lives at least as long as this reference.
        unsafe { self.inner.as_ref() }
    }
}

impl<T: Send + Sync> Clone for Arc<T> {
    #[inline]
    fn clone(&self) -> Arc<T> {
        self.inner().references.get();
        Arc { inner: self.inner, owned: PhantomData }
    }
}

impl<T: Send + Sync> Deref for Owner<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T: Send + Sync> Deref for Arc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

/// Frees a value.
///
/// # Safety
///
/// The last reference was given back, by the caller.
#[cold]
unsafe fn free<T>(inner: NonNull<Inner<T>>) {
    // SAFETY: it was a box, and nobody refers to it.
    drop(unsafe { Box::from_raw(inner.as_ptr()) });
}

impl<T: Send + Sync> Drop for Owner<T> {
    fn drop(&mut self) {
        if self.inner().references.kill() == Ok(true) {
            // SAFETY: that was the last reference.
            unsafe { free(self.inner) };
        }
    }
}

impl<T: Send + Sync> Drop for Arc<T> {
    #[inline]
    fn drop(&mut self) {
        if self.inner().references.put() {
            // SAFETY: that was the last reference.
            unsafe { free(self.inner) };
        }
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
