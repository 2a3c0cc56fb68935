//! Errors of metrics, for C.

use std::ffi::c_int;

use percid_metrics::registry::{LabelError, RegisterError};

/// The refusal of a family.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) errno: c_int,
    /// The wrong setting, and the allowed values.
    pub(super) why: String,
}

impl Refusal {
    pub(super) fn new(errno: c_int, why: impl Into<String>) -> Refusal {
        Refusal { errno, why: why.into() }
    }

    pub(super) fn of_register(error: &RegisterError) -> Refusal {
        let errno = match error {
            RegisterError::NameTaken(_) => -libc::EEXIST,
            RegisterError::NoMemory => -libc::ENOMEM,
            // The remaining errors mean that the description does not follow the rules of the
            // formats.
            _ => -libc::EINVAL,
        };
        Refusal::new(errno, error.to_string())
    }
}

/// Returns the error if there is no series for labels.
pub(super) fn of_label(error: LabelError) -> c_int {
    match error {
        LabelError::NotUtf8 => -libc::EILSEQ,
        LabelError::NoMemory => -libc::ENOMEM,
        _ => -libc::EINVAL,
    }
}
