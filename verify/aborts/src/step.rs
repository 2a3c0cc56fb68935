//! An interruption of a script.

use crate::injection::Injection;

/// An interruption of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The index of the section.
    pub section: usize,
    /// The address in the file: in the section, in front of it, or right behind it.
    pub address: u64,
    /// The injection at this address.
    pub injection: Injection,
    /// `true` if it happens in the signal handler that the step before started, while the section
    /// of that step is still active.
    pub nested: bool,
}
