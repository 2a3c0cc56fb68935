//! The failure of the command for an error of a sweep.

use percid_command::exit::Failure;
use percid_sweep::Error;

/// Converts an error of a sweep to a failure of the command.
pub(super) fn failure(error: Error) -> Failure {
    match error {
        Error::Io { what, cause } => Failure::Io { what, cause },
        Error::Stopped => Failure::Interrupted,
        other => Failure::Usage(other.to_string()),
    }
}
