//! The methods of detecting access to a region.

use std::fmt;

/// The method by which the balancer detects which threads use a region.
///
/// ```
/// use percid_numa::AccessMethod;
///
/// assert_eq!(AccessMethod::Trapped.to_string(), "trapped");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessMethod {
    /// Reports of the program, by [`Region::touch`](crate::Region::touch).
    Reported,
    /// Faults: armed pages have no access rights.
    Trapped,
    /// Writes: armed pages are write-protected, and a writing thread waits until its access is
    /// recorded.
    Written,
}

impl AccessMethod {
    /// All methods.
    pub const ALL: [AccessMethod; 3] =
        [AccessMethod::Reported, AccessMethod::Trapped, AccessMethod::Written];

    /// Returns the name that reports and the command use.
    ///
    /// ```
    /// use percid_numa::AccessMethod;
    ///
    /// assert_eq!(AccessMethod::ALL.map(AccessMethod::name), ["reported", "trapped", "written"]);
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            AccessMethod::Reported => "reported",
            AccessMethod::Trapped => "trapped",
            AccessMethod::Written => "written",
        }
    }
}

impl fmt::Display for AccessMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
