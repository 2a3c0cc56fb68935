//! The atomic types of all code whose interleavings are checked exhaustively: `verify/loom`
//! compiles those files again with this one module replaced.

pub(crate) use std::sync::atomic::*;
