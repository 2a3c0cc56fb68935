//! What can be wrong with metrics, as C knows it.

use std::ffi::c_int;

use percid_metrics::registry::{LabelError, RegisterError};

/// The refusal of a family.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) errno: c_int,
    /// The setting that is wrong, and what is allowed.
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
            // The rest says that the description is not as the formats want it.
            _ => -libc::EINVAL,
        };
        Refusal::new(errno, error.to_string())
    }
}

/// Why there is no series for labels.
pub(super) fn of_label(error: LabelError) -> c_int {
    match error {
        LabelError::NotUtf8 => -libc::EILSEQ,
        LabelError::NoMemory => -libc::ENOMEM,
        _ => -libc::EINVAL,
    }
}
