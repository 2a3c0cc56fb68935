//! Why a space, a store or a job is refused.

use std::fmt;
use std::io;

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The space, or a file that it names, makes no sense: what was expected.
    Space(String),
    /// The store has the runs of another space, or those of another version of percid.
    OtherSweep(String),
    /// A job for another version of percid came to this one.
    OtherVersion {
        /// Whose job it is.
        job: String,
        /// Who should compute it.
        worker: String,
    },
    /// A simulation ended without a result.
    Run(String),
    /// It was stopped before it was over.
    Stopped,
    /// A file of the store is not what was written there.
    Damaged {
        /// Its name in the store.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be read or written.
    Io {
        /// What could not be done.
        what: String,
        /// What the system said.
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
