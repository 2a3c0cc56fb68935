//! What can be wrong with metrics, as C knows it.

use std::ffi::c_int;

use percid_metrics::registry::{LabelError, RegisterError};

/// Why a metric is not registered.
pub(super) fn of_register(error: RegisterError) -> c_int {
    match error {
        RegisterError::NameTaken(_) => -libc::EEXIST,
        RegisterError::NoMemory => -libc::ENOMEM,
        // The rest says that the description is not as the formats want it.
        _ => -libc::EINVAL,
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
