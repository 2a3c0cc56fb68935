//! The atomic types of everything whose interleavings are checked exhaustively: `verify/loom`
//! compiles those files again with this one name replaced.

pub(crate) use std::sync::atomic::*;
