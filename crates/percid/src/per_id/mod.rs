//! Per-ID data for structures of your own: [`PerId`] and the types of its fields, results and
//! visits.

mod field;
mod make;
mod object;
mod operations;
mod read;
mod settle;
mod shard;
mod slow;
#[cfg(test)]
mod tests;
#[cfg(all(
    feature = "capi",
    target_os = "linux",
    target_pointer_width = "64",
    not(percid_elsewhere)
))]
pub(crate) mod untyped;
mod visit;
mod words;

pub use field::Field;
pub(crate) use make::sealed::Make;
pub use object::PerId;
pub use operations::{NoMemory, Unchanged};
pub(crate) use read::ReadValue;
pub use settle::Unsettled;
pub use shard::Held;
pub use visit::{Missed, Visit};
pub use words::{Bytes, Pointer, Stored, Word};
