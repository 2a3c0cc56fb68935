//! Errors of the library as negative `errno` values.

use std::ffi::c_int;

use percid_numa::{BadSetting, RegisterError};

/// Returns the error for memory that cannot be registered. `percid_region_register()` documents
/// them; `percid_region_error()` has the texts.
pub(crate) fn of_register(why: RegisterError) -> c_int {
    match why {
        RegisterError::Empty | RegisterError::NotAligned { .. } => -libc::EINVAL,
        RegisterError::Overlaps { .. } => -libc::EEXIST,
        RegisterError::NotMapped { .. } => -libc::ENXIO,
        RegisterError::Mixed { .. } => -libc::EXDEV,
        RegisterError::NoRights { .. } | RegisterError::Executable { .. } => -libc::EFAULT,
        RegisterError::DataLimited => -libc::EDQUOT,
        RegisterError::ThreadMemory { .. }
        | RegisterError::HandlerData { .. }
        | RegisterError::PercidMemory { .. } => -libc::EDEADLK,
        RegisterError::TooManyTrapped => -libc::ENOSPC,
        RegisterError::HandlerReplaced => -libc::EBUSY,
        RegisterError::NoMemory => -libc::ENOMEM,
        RegisterError::NoProc => -libc::ENOSYS,
        RegisterError::Forked => -libc::EPERM,
        RegisterError::NotPrivate { .. } => -libc::ENODEV,
        RegisterError::NotPermitted => -libc::EACCES,
        RegisterError::NotSupported => -libc::EPROTONOSUPPORT,
        RegisterError::OtherMonitor => -libc::EALREADY,
        RegisterError::TooManyWritten => -libc::EUSERS,
        RegisterError::Refused { .. } => -libc::EIO,
        // `RegisterError` may grow; besides these, there is `NotMovable`.
        _ => -libc::ENOTSUP,
    }
}

/// Returns the error for settings that cannot be used.
pub(crate) fn of_setting(why: BadSetting) -> c_int {
    match why {
        BadSetting::Periods | BadSetting::ScanSize => -libc::ERANGE,
        // `BadSetting` may grow; besides these, there is `Zero`.
        _ => -libc::EINVAL,
    }
}

/// Returns the error of the operating system.
pub(crate) fn of_system(why: &std::io::Error) -> c_int {
    -why.raw_os_error().unwrap_or(libc::EAGAIN)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn refusals_can_be_told_apart() {
        let refusals = [
            RegisterError::Empty,
            RegisterError::Overlaps { region: 1 },
            RegisterError::NotMapped { address: 1 },
            RegisterError::NotMovable { address: 1 },
            RegisterError::Mixed { address: 1 },
            RegisterError::NoRights { address: 1 },
            RegisterError::DataLimited,
            RegisterError::ThreadMemory { address: 1 },
            RegisterError::TooManyTrapped,
            RegisterError::HandlerReplaced,
            RegisterError::NoMemory,
            RegisterError::NoProc,
            RegisterError::Forked,
            RegisterError::NotPrivate { address: 1 },
            RegisterError::NotPermitted,
            RegisterError::NotSupported,
            RegisterError::OtherMonitor,
            RegisterError::TooManyWritten,
            RegisterError::Refused { errno: 1 },
        ];
        let numbers: BTreeSet<_> = refusals.into_iter().map(of_register).collect();
        assert_eq!(numbers.len(), refusals.len());
        assert!(numbers.iter().all(|number| *number < 0));
        let not_pages = of_register(RegisterError::NotAligned { page: 4096 });
        assert_eq!(not_pages, of_register(RegisterError::Empty), "both are no range of pages");
    }

    #[test]
    fn settings_that_cannot_be_used() {
        assert_eq!(of_setting(BadSetting::Zero("batch")), -libc::EINVAL);
        assert_eq!(of_setting(BadSetting::Periods), -libc::ERANGE);
        assert_eq!(of_setting(BadSetting::ScanSize), -libc::ERANGE);
    }
}
