//! File systems that test programs expect.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::ptr;

/// File system and place, in order of mounting: later ones may lie in earlier
/// ones.
const MOUNTS: [(&CStr, &str); 9] = [
    (c"proc", "/proc"),
    (c"sysfs", "/sys"),
    (c"devtmpfs", "/dev"),
    (c"tmpfs", "/dev/shm"),
    (c"tmpfs", "/tmp"),
    (c"tmpfs", "/run"),
    (c"cgroup2", "/sys/fs/cgroup"),
    (c"tracefs", "/sys/kernel/tracing"),
    (c"debugfs", "/sys/kernel/debug"),
];

/// Mounts everything; returns a note for each that could not be. Programs that
/// need one of those fail by themselves, others need not.
pub(crate) fn mount_all() -> Vec<String> {
    let note = |(kind, place): &(&CStr, &str)| {
        let error = mount(kind, place).err()?;
        Some(format!("could not mount {} on {place}: {error}", kind.to_string_lossy()))
    };
    MOUNTS.iter().filter_map(note).collect()
}

fn mount(kind: &CStr, place: &str) -> io::Result<()> {
    // In sysfs the places are there already and cannot be made.
    let _ = fs::create_dir_all(place);
    let target = CString::new(place)?;
    // SAFETY: all strings end with a zero and live through the call; these file
    // systems take no data.
    let result =
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, ptr::null()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
