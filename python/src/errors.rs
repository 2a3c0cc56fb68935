//! The exceptions of the package: classes of `percid.errors`.

use percid_command::exit::Failure;
use percid_sweep::Error;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Creates an exception of this class.
pub(crate) fn named(py: Python<'_>, class: &str, message: String) -> PyErr {
    let class = py.import("percid.errors").and_then(|errors| errors.getattr(class));
    match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, (message,)),
        Err(error) => error,
    }
}

/// Creates a `SpaceError` for an invalid value. The message has the expected one.
pub(crate) fn space(py: Python<'_>, message: String) -> PyErr {
    named(py, "SpaceError", message)
}

/// Creates the exception for an error of a sweep.
pub(crate) fn of_sweep(py: Python<'_>, error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::OtherSweep(_) | Error::Damaged { .. } => named(py, "StoreError", message),
        Error::OtherVersion { .. } => named(py, "VersionError", message),
        Error::Run(_) => named(py, "RunError", message),
        Error::Stopped => PyKeyboardInterrupt::new_err(message),
        Error::Io { cause, .. } => system(cause.raw_os_error(), message),
        _ => space(py, message),
    }
}

/// Creates the exception for the failure of a command.
pub(crate) fn of_command(py: Python<'_>, failure: Failure) -> PyErr {
    let message = failure.to_string();
    match failure {
        Failure::Io { cause, .. } => system(cause.raw_os_error(), message),
        Failure::Interrupted => PyKeyboardInterrupt::new_err(message),
        Failure::Violation(_) => named(py, "RunError", message),
        Failure::Usage(_) => space(py, message),
    }
}

/// Creates an `OSError`. With an error number, Python selects the subclass, such as
/// `FileNotFoundError`.
pub(crate) fn system(number: Option<i32>, message: String) -> PyErr {
    match number {
        Some(number) => PyOSError::new_err((number, message)),
        None => PyOSError::new_err(message),
    }
}
