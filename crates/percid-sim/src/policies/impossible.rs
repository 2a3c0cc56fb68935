//! The error of a policy that cannot continue.

use std::fmt;

/// The reason why a policy cannot continue: an event that cannot happen on a kernel. An incomplete
/// recording may contain such events, the engine never produces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impossible(pub &'static str);

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Impossible {}
