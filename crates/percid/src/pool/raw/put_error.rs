//! The reasons why an object is not taken back.

use std::fmt;

/// The reason why an object was not taken back.
///
/// ```
/// use percid::pool::{PutError, RawPool};
/// use std::alloc::Layout;
///
/// let pool = RawPool::new(Layout::new::<u64>(), 64);
/// let object = pool.get().expect("memory");
/// // SAFETY: the object came from this pool and is not used any more.
/// unsafe {
///     assert_eq!(pool.put(object), Ok(()));
///     assert_eq!(pool.put(object), Err(PutError::DoublePut));
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PutError {
    /// It is in the pool already.
    DoublePut,
    /// It belongs to another pool.
    WrongPool,
    /// Its memory was returned to the kernel: the pool was destroyed, or the object was idle during
    /// a drain, or a bounded pool had no room for it.
    Gone,
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PutError::DoublePut => "the object is in the pool already: it was put back twice",
            PutError::WrongPool => "the object belongs to another pool",
            PutError::Gone => {
                "the object's memory is gone: its pool was destroyed, or it was put back before a drain"
            }
        })
    }
}

impl std::error::Error for PutError {}
