//! Results of a subcommand, and their exit statuses.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The possible ends of a subcommand that has printed its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything was measured. Exit status 0.
    Complete,
    /// Ctrl-C came first; the measurements until then were printed. Exit status 130.
    Interrupted,
    /// A structure did not account for everything put into it. Exit status 1.
    WrongCount,
    /// A simulated value is outside the bounds around the published one. Exit status 1.
    OutOfBounds,
    /// A process has no balancer, or none that answers. Exit status 1.
    NoAnswer,
    /// IDs differ from those that a kernel assigned. Exit status 1.
    Differs,
    /// A policy breaks its contract. Exit status 1.
    Violated,
    /// Something failed; the results until then were written. Exit status 1.
    Partial,
    /// A check could not be executed. Exit status 3.
    NotChecked,
    /// The exit status of a command that was run.
    Status(u8),
}

/// The reason why a subcommand could not print a result.
#[derive(Debug)]
pub enum Failure {
    /// An error outside this program. Exit status 1.
    Io {
        /// The action that failed.
        what: String,
        /// The system's error.
        cause: io::Error,
    },
    /// Invalid arguments, or an invalid file that they name. Exit status 2.
    Usage(String),
    /// Ctrl-C came before there was anything to print. Exit status 130.
    Interrupted,
}

impl Failure {
    /// Creates a failure from the action that failed, and the system's error.
    pub fn new(what: impl Into<String>, cause: io::Error) -> Self {
        Failure::Io { what: what.into(), cause }
    }

    /// Creates a failure for a feature that only some systems have, with the names of the systems.
    pub fn not_supported(what: &str, systems: &str) -> Self {
        let cause = io::Error::new(io::ErrorKind::Unsupported, "not supported here");
        Failure::new(format!("{what} needs {systems}"), cause)
    }

    /// Returns `true` if the reader of the output closed it, as in `percid info | head -1`: that is
    /// not an error.
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

/// Prints the failure, if there is one, and returns the exit status.
pub fn code(result: Result<Exit, Failure>) -> ExitCode {
    match result {
        Ok(Exit::Complete) => ExitCode::SUCCESS,
        Ok(Exit::Interrupted) | Err(Failure::Interrupted) => ExitCode::from(130),
        Ok(Exit::NotChecked) => ExitCode::from(3),
        Ok(Exit::Status(status)) => ExitCode::from(status),
        Ok(
            Exit::WrongCount
            | Exit::OutOfBounds
            | Exit::NoAnswer
            | Exit::Differs
            | Exit::Violated
            | Exit::Partial,
        ) => ExitCode::FAILURE,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(Failure::Usage(what)) => refuse(format_args!("{what}")),
        Err(failure) => {
            complain(format_args!("error: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints one line and returns the exit status of wrong arguments.
pub fn refuse(what: fmt::Arguments<'_>) -> ExitCode {
    complain(what);
    ExitCode::from(2)
}

/// Prints one line on stderr. Unlike `eprintln!` it does not panic when stderr is closed.
pub fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "percid: {line}");
}
