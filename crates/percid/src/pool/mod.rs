//! Pools: objects that are reused instead of being created anew.

mod current;
mod cut;
mod left;
mod object;
mod owned;
mod pooled;
mod raw;
mod spare;

pub use object::Pool;
pub use owned::OwnedPooled;
pub use pooled::Pooled;
pub(crate) use raw::all_slabs;
pub use raw::{PutError, RawPool};
