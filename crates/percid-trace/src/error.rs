//! Errors in files.

use std::fmt;
use std::io;

/// The reason why a trace could not be read.
#[derive(Debug)]
pub enum Error {
    /// The system refused.
    Io(io::Error),
    /// The file is not what it should be.
    Malformed(Malformed),
}

/// An error in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The position.
    pub at: Position,
    /// The error, or what was expected.
    pub what: String,
}

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// A byte, from 0.
    Byte(u64),
    /// A line, from 1.
    Line(u64),
    /// A row, from 0.
    Row(u64),
    /// An event, from 0, in the order of their times.
    Event(u64),
    /// The file as a whole.
    File,
}

impl Error {
    /// A file that is wrong at a byte.
    pub fn at_byte(at: u64, what: impl Into<String>) -> Error {
        Error::Malformed(Malformed { at: Position::Byte(at), what: what.into() })
    }

    /// A file that is wrong in a line.
    pub fn at_line(at: u64, what: impl Into<String>) -> Error {
        Error::Malformed(Malformed { at: Position::Line(at), what: what.into() })
    }

    /// A file that is wrong in an event.
    pub fn at_event(at: u64, what: impl Into<String>) -> Error {
        Error::Malformed(Malformed { at: Position::Event(at), what: what.into() })
    }

    /// A file that is wrong in a row.
    pub fn at_row(at: u64, what: impl Into<String>) -> Error {
        Error::Malformed(Malformed { at: Position::Row(at), what: what.into() })
    }

    /// A file that is wrong as a whole.
    pub fn in_file(what: impl Into<String>) -> Error {
        Error::Malformed(Malformed { at: Position::File, what: what.into() })
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => write!(f, "{error}"),
            Error::Malformed(malformed) => write!(f, "{malformed}"),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Malformed { at, what } = self;
        match at {
            Position::Byte(byte) => write!(f, "byte {byte}: {what}"),
            Position::Line(line) => write!(f, "line {line}: {what}"),
            Position::Event(event) => write!(f, "event {event}: {what}"),
            Position::Row(row) => write!(f, "row {row}: {what}"),
            Position::File => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for Error {}
