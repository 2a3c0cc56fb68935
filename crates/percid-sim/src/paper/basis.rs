//! The bases of numbers: what a number of a simulated published table rests on.

use serde::Serialize;

/// The basis of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It was chosen so that the model comes near to the published table.
    Fitted,
    /// Nobody has published or measured it for this machine and program.
    Assumed,
    /// It was measured on another machine, or by others, and not for this table.
    Measured,
    /// It follows from the published protocol.
    Derived,
    /// It was published with the table, or with the kernel, the program or the machine.
    Published,
}

impl Basis {
    /// All bases: those that rest on least come first.
    pub const ALL: [Basis; 5] =
        [Basis::Fitted, Basis::Assumed, Basis::Measured, Basis::Derived, Basis::Published];

    /// Returns the name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Assumed => "assumed",
            Basis::Measured => "measured",
            Basis::Derived => "derived",
            Basis::Published => "published",
        }
    }
}

/// A number on the list of those on which a published table depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Name of the number.
    pub name: &'static str,
    /// The basis of the number.
    pub basis: Basis,
    /// Its source in words; empty if the file of the machine or of the workload has it.
    pub origin: &'static str,
}

impl Listed {
    /// Creates an entry.
    pub const fn new(name: &'static str, basis: Basis, origin: &'static str) -> Listed {
        Listed { name, basis, origin }
    }
}
