//! A lock for data that is read often and written rarely: [`RwLock`] and its guards.

mod guards;
#[cfg(feature = "lock_api")]
mod lock_api;
mod object;
mod queue;
mod raw;
#[cfg(test)]
mod tests;

pub use guards::{RwLockReadGuard, RwLockWriteGuard};
pub use object::RwLock;
pub use raw::{RawRwLock, WriteError};
