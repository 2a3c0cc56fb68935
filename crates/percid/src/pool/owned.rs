//! Loans that keep their pool alive.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::Arc;

use super::object::Pool;
use super::pooled::put;

impl<T: Send, F: Fn() -> T> Pool<T, F> {
    /// Lends an object like [`get`](Pool::get). The loan shares the ownership of the pool, so it
    /// can go to spawned threads and tasks.
    ///
    /// It costs one atomic addition more, and another one when it is dropped, which CPUs contend
    /// for: prefer [`get`](Pool::get) where a borrow is possible.
    ///
    /// ```
    /// use percid::Pool;
    /// use std::sync::Arc;
    ///
    /// let buffers = Arc::new(Pool::new(Vec::<u8>::new, 64));
    /// let mut buffer = buffers.get_owned();
    /// let length = std::thread::spawn(move || {
    ///     buffer.clear();
    ///     buffer.extend_from_slice(b"hello");
    ///     buffer.len()
    /// });
    /// assert_eq!(length.join().expect("no panic"), 5);
    /// assert_eq!(buffers.drain(), 1);
    /// ```
    #[inline]
    pub fn get_owned(self: &Arc<Self>) -> OwnedPooled<T, F> {
        OwnedPooled { object: ManuallyDrop::new(self.take_or_make()), pool: Arc::clone(self) }
    }
}

/// A loan of an object that shares the ownership of its pool. The object is returned to the pool
/// when the loan is dropped.
///
/// ```
/// use percid::Pool;
/// use percid::pool::OwnedPooled;
/// use std::sync::Arc;
///
/// let words: Arc<Pool<String>> = Arc::new(Pool::new(String::new, 64));
/// let mut word: OwnedPooled<String> = words.get_owned();
/// drop(words);
/// word.push('a'); // the pool still exists
/// ```
///
/// Its thread may be another one, so the pool's function may only capture what threads can share:
///
/// ```compile_fail
/// use std::rc::Rc;
/// use std::sync::Arc;
///
/// let one = Rc::new(1);
/// let numbers = Arc::new(percid::Pool::new(move || *one, 64));
/// let number = numbers.get_owned();
/// std::thread::spawn(move || *number);
/// ```
#[must_use = "the object goes back at once"]
pub struct OwnedPooled<T: Send, F = fn() -> T> {
    object: ManuallyDrop<Box<T>>,
    pool: Arc<Pool<T, F>>,
}

impl<T: Send, F> OwnedPooled<T, F> {
    /// Takes the object out of the pool permanently.
    ///
    /// ```
    /// use percid::Pool;
    /// use std::sync::Arc;
    ///
    /// let words = Arc::new(Pool::new(String::new, 64));
    /// let kept: Box<String> = words.get_owned().into_box();
    /// assert_eq!((kept.len(), words.drain()), (0, 0));
    /// ```
    pub fn into_box(self) -> Box<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: both fields are taken once: `this` is not dropped.
        let (object, pool) =
            unsafe { (ManuallyDrop::take(&mut this.object), ptr::read(&raw const this.pool)) };
        drop(pool);
        object
    }
}

impl<T: Send, F> Deref for OwnedPooled<T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Send, F> DerefMut for OwnedPooled<T, F> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.object
    }
}

impl<T: Send, F> Drop for OwnedPooled<T, F> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the object is taken once, by the destructor.
        let object = unsafe { ManuallyDrop::take(&mut self.object) };
        put(&self.pool.idle, object);
    }
}

impl<T: Send + fmt::Debug, F> fmt::Debug for OwnedPooled<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object that counts itself when it is dropped.
    struct Counted(Arc<()>);

    #[test]
    fn loans_may_be_held_across_await() {
        fn is_send(_: &impl Send) {}
        let pool = Arc::new(Pool::new(|| 1u8, 8));
        let loaned = Arc::clone(&pool);
        let owned = async move {
            let object = loaned.get_owned();
            std::future::ready(()).await;
            *object
        };
        is_send(&owned);
        is_send(&async {
            let object = pool.get();
            std::future::ready(()).await;
            *object
        });
    }

    #[test]
    fn a_loan_keeps_its_pool_and_returns_to_it() {
        let all = Arc::new(());
        let made = Arc::clone(&all);
        let pool = Arc::new(Pool::new(move || Counted(Arc::clone(&made)), 8));
        let loans = [pool.get_owned(), pool.get_owned()];
        assert_eq!((Arc::strong_count(&pool), Arc::strong_count(&loans[0].0)), (3, 4));
        drop(loans);
        assert_eq!((Arc::strong_count(&pool), pool.drain()), (1, 2));

        let (last, kept) = (pool.get_owned(), pool.get_owned().into_box());
        assert_eq!(Arc::strong_count(&pool), 2, "a box does not belong to the pool");
        drop(pool);
        let thread = std::thread::spawn(move || drop(last));
        thread.join().expect("no panic");
        assert_eq!(Arc::strong_count(&all), 2, "the pool was dropped with its objects");
        drop(kept);
        assert_eq!(Arc::strong_count(&all), 1);
    }
}
