//! An interruption of a script.

use crate::injection::Injection;

/// An interruption of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The index of the section.
    pub section: usize,
    /// The address in the file: in the section, in front of it, or right behind it.
    pub address: u64,
    /// What happens there.
    pub injection: Injection,
    /// Whether it happens in the signal handler that the step before started, so that the section
    /// of that step is not left yet.
    pub nested: bool,
}
