//! Loans that borrow their pool.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use crate::stack::Stack;

/// A loan of an object, which is returned to the pool when the loan is dropped.
///
/// ```
/// let words = percid::Pool::new(String::new, 64);
/// let mut word: percid::pool::Pooled<'_, String> = words.get();
/// word.push('a');
/// drop(word); // goes back as it is
/// assert_eq!(words.drain(), 1);
/// ```
#[must_use = "the object goes back at once"]
pub struct Pooled<'p, T: Send> {
    object: ManuallyDrop<Box<T>>,
    idle: &'p Stack<Box<T>>,
}

impl<'p, T: Send> Pooled<'p, T> {
    #[inline(always)]
    pub(super) fn new(object: Box<T>, idle: &'p Stack<Box<T>>) -> Self {
        Pooled { object: ManuallyDrop::new(object), idle }
    }

    /// Takes the object out of the pool permanently.
    ///
    /// ```
    /// let words = percid::Pool::new(String::new, 64);
    /// let kept: Box<String> = words.get().into_box();
    /// assert_eq!((kept.len(), words.drain()), (0, 0));
    /// ```
    pub fn into_box(self) -> Box<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the object is taken once: `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.object) }
    }
}

impl<T: Send> Deref for Pooled<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Send> DerefMut for Pooled<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.object
    }
}

impl<T: Send> Drop for Pooled<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the object is taken once, by the destructor.
        let object = unsafe { ManuallyDrop::take(&mut self.object) };
        put(self.idle, object);
    }
}

impl<T: Send + fmt::Debug> fmt::Debug for Pooled<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

/// Returns an object to the pool; drops it if there is no room.
#[inline(always)]
pub(super) fn put<T: Send>(idle: &Stack<Box<T>>, object: Box<T>) {
    drop(idle.push(object));
}
