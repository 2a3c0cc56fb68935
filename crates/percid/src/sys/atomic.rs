//! The atomic types of all code whose interleavings are checked exhaustively: `verify/loom`
//! compiles those files with this one name replaced.

pub(crate) use std::sync::atomic::*;
