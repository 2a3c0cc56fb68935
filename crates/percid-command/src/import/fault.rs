//! The fault of a text that describes no machine.

use std::fmt;

/// The reason why a text describes no machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The number of the faulty line, counted from 1, if the fault is in one line.
    line: Option<usize>,
    expected: String,
}

impl Fault {
    pub(super) fn in_line(line: usize, expected: impl Into<String>) -> Fault {
        Fault { line: Some(line), expected: expected.into() }
    }

    pub(super) fn of_all(expected: impl Into<String>) -> Fault {
        Fault { line: None, expected: expected.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.expected),
            None => f.write_str(&self.expected),
        }
    }
}

impl std::error::Error for Fault {}
