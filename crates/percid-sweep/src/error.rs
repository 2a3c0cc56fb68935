//! Errors of spaces, stores and jobs.

use std::fmt;
use std::io;

/// An error of a sweep.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The space, or a file that it contains, is invalid; with what was expected.
    Space(String),
    /// The store has the runs of another space, or of another version of percid.
    OtherSweep(String),
    /// The job is for another version of percid.
    OtherVersion {
        /// Version that made the job.
        job: String,
        /// Version of this worker.
        worker: String,
    },
    /// A simulation ended without a result.
    Run(String),
    /// The simulation was stopped before its end.
    Stopped,
    /// A file of the store is damaged.
    Damaged {
        /// Name of the file in the store.
        file: String,
        /// Description of the damage.
        why: String,
    },
    /// A file could not be read or written.
    Io {
        /// Description of the operation.
        what: String,
        /// Error of the operating system.
        cause: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Space(why) | Error::OtherSweep(why) | Error::Run(why) => write!(f, "{why}"),
            Error::OtherVersion { job, worker } => write!(
                f,
                "expected a worker with percid {job}, as the program that sent the job; this one \
                 has {worker}"
            ),
            Error::Stopped => write!(f, "stopped"),
            Error::Damaged { file, why } => {
                write!(f, "{file}: {why}; delete it, and what is missing is computed again")
            }
            Error::Io { what, cause } => write!(f, "{what}: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
