//! Names of the errors of operations on pages.

use std::collections::BTreeMap;

use serde::Serializer;

/// Returns the name of an `errno` from looking pages up, arming or moving them (move_pages(2),
/// mprotect(2)); its number otherwise.
pub(crate) fn name(errno: i32) -> String {
    let names = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EIO, "EIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::ENODEV, "ENODEV"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENOSYS, "ENOSYS"),
    ];
    let found = names.iter().find(|(number, _)| *number == errno);
    found.map_or_else(|| format!("errno {errno}"), |(_, name)| (*name).to_owned())
}

/// Serialises numbers of pages by the names of their errors.
pub(crate) fn serialize<S: Serializer>(
    failed: &BTreeMap<i32, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(failed.iter().map(|(number, pages)| (name(*number), pages)))
}
