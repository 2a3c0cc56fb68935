//! The errors that prevent a test of the race.

use std::fmt;

/// A reason why there is no result.
#[derive(Debug)]
pub enum Error {
    /// The command line could not be understood.
    Usage(String),
    /// The harness below could not get a kernel, build the guest or start the emulator.
    Harness(percid_vm::Error),
    /// The running kernel has no code of the form that is looked for.
    NoPlace {
        /// The kernel.
        release: String,
        /// The searched pattern, and the code that was found.
        why: String,
    },
    /// The emulator's debugging stub does not follow a command.
    Stub(String),
    /// The machine ended, hung or sent invalid data, again and again.
    Machine(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(f, "{what}; --help shows the options"),
            Self::Harness(error) => error.fmt(f),
            Self::NoPlace { release, why } => write!(
                f,
                "Linux {release} has no place for this race: {why} (the protocol in question is that of Linux 6.4 to 6.18)"
            ),
            Self::Stub(what) => write!(f, "the emulator's debugging stub: {what}"),
            Self::Machine(what) => write!(f, "the machine: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<percid_vm::Error> for Error {
    fn from(error: percid_vm::Error) -> Self {
        Self::Harness(error)
    }
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Self {
        Self::Usage(error.to_string())
    }
}
