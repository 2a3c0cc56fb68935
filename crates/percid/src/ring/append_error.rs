//! The reasons why a record is lost at once.

use std::fmt;

/// The reason why a record was not appended. Such records are counted by
/// [`Ring::lost`](super::Ring::lost).
///
/// ```
/// use percid::{Overflow, Ring, ring::AppendError};
///
/// let ring = Ring::new(1024, Overflow::DropNewest);
/// assert_eq!(ring.append(&[0; 1000]), Err(AppendError::TooLong));
/// assert_eq!(ring.lost(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AppendError {
    /// It is longer than [`Ring::max_record_len`](super::Ring::max_record_len).
    TooLong,
    /// The ring is full, and keeps the oldest records
    /// ([`Overflow::DropNewest`](super::Overflow::DropNewest)).
    Full,
    /// The thread currently has no ID, and another thread is using the shared shard.
    Busy,
    /// The ring has no memory.
    NoMemory,
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AppendError::TooLong => "the record is longer than the ring takes",
            AppendError::Full => "the ring is full",
            AppendError::Busy => "the thread has no ID, and the shared shard is in use",
            AppendError::NoMemory => "no memory for the ring",
        })
    }
}

impl std::error::Error for AppendError {}
