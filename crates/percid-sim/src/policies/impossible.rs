//! What no policy can follow.

use std::fmt;

/// Why a policy cannot go on: what it was told cannot have happened on a kernel. A recording that is
/// not whole may say such things, the engine never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impossible(pub &'static str);

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Impossible {}
