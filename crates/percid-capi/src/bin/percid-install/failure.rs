//! The error of the installer.

/// An error message.
pub(crate) type Failure = String;
