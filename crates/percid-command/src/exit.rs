//! How a subcommand ended, and the exit status that says so.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The ways a subcommand can end after it has printed its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything was measured. Exit status 0.
    Complete,
    /// Ctrl-C came first; what had been measured by then was printed. Exit status 130.
    Interrupted,
    /// A structure did not account for all that went into it. Exit status 1.
    WrongCount,
    /// A simulated figure is outside of the bounds around what was published. Exit status 1.
    OutOfBounds,
    /// A process has no balancer, or none that answers. Exit status 1.
    NoAnswer,
    /// IDs are not those that a kernel gave. Exit status 1.
    Differs,
    /// Something failed on the way; what was there by then was written. Exit status 1.
    Partial,
    /// What should have been checked could not be. Exit status 3.
    NotChecked,
    /// That of a command that was run. Exit status as given.
    Status(u8),
}

/// Why a subcommand could not print a result.
#[derive(Debug)]
pub enum Failure {
    /// Something outside of this program went wrong. Exit status 1.
    Io {
        /// What could not be done.
        what: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The arguments make no sense, or a file that they name does not. Exit status 2.
    Usage(String),
    /// Ctrl-C came before there was anything to print. Exit status 130.
    Interrupted,
}

impl Failure {
    /// What could not be done, and what the system said.
    pub fn new(what: impl Into<String>, cause: io::Error) -> Self {
        Failure::Io { what: what.into(), cause }
    }

    /// What there is on some systems only, with the systems.
    pub fn not_supported(what: &str, systems: &str) -> Self {
        let cause = io::Error::new(io::ErrorKind::Unsupported, "not supported here");
        Failure::new(format!("{what} needs {systems}"), cause)
    }

    /// The reader of the output went away, as in `percid info | head -1`: that is no error.
    fn is_broken_pipe(&self) -> bool {
        matches!(self, Failure::Io { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Io { what, cause } => write!(f, "{what}: {cause}"),
            Failure::Usage(what) => write!(f, "{what}"),
            Failure::Interrupted => write!(f, "interrupted"),
        }
    }
}

/// Prints the failure, if there is one, and gives the exit status.
pub fn code(result: Result<Exit, Failure>) -> ExitCode {
    match result {
        Ok(Exit::Complete) => ExitCode::SUCCESS,
        Ok(Exit::Interrupted) | Err(Failure::Interrupted) => ExitCode::from(130),
        Ok(Exit::NotChecked) => ExitCode::from(3),
        Ok(Exit::Status(status)) => ExitCode::from(status),
        Ok(
            Exit::WrongCount | Exit::OutOfBounds | Exit::NoAnswer | Exit::Differs | Exit::Partial,
        ) => ExitCode::FAILURE,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(Failure::Usage(what)) => refuse(format_args!("{what}")),
        Err(failure) => {
            complain(format_args!("error: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints one line and gives the exit status of wrong arguments.
pub fn refuse(what: fmt::Arguments<'_>) -> ExitCode {
    complain(what);
    ExitCode::from(2)
}

/// One line on stderr. Unlike `eprintln!` it does not panic when stderr is closed.
pub fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "percid: {line}");
}
