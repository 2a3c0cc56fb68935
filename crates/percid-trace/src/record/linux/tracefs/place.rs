//! The mount point of tracefs.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of tracefs, which has `instances` in it; or what is missing.
pub(super) fn find() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    let candidates = candidates(&mounts);
    let Some(first) = candidates.first() else { return Err(NOT_MOUNTED.to_owned()) };
    let usable = candidates.iter().find(|path| path.join("instances").is_dir());
    match (usable, fs::read_dir(first)) {
        (Some(path), _) => Ok(path.clone()),
        (None, Err(error)) => Err(missing(first, &error)),
        (None, Ok(_)) => Err(NOT_MOUNTED.to_owned()),
    }
}

const NOT_MOUNTED: &str =
    "/sys/kernel/tracing is not mounted (mount -t tracefs nodev /sys/kernel/tracing)";

/// Returns the meaning of an error on a file of tracefs for the user who records.
pub(super) fn missing(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            format!("{path}: permission denied; run as root, or let its group be one of the user's")
        }
        _ => format!("{path}: {error}"),
    }
}

/// The mount points of tracefs, then the folders in which debugfs has it.
fn candidates(mounts: &str) -> Vec<PathBuf> {
    let points = |kind: &str, within: &str| -> Vec<PathBuf> {
        let lines = mounts.lines().filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let point = before.split(' ').nth(4)?;
            (after.split(' ').next()? == kind).then(|| Path::new(&unescaped(point)).join(within))
        });
        lines.collect()
    };
    let mut found = points("tracefs", "");
    found.extend(points("debugfs", "tracing"));
    found
}

/// Blanks and similar characters are encoded as a backslash and three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |mut path, part| {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                path.push(char::from(code));
                path.push_str(&part[3..]);
            }
            None => {
                path.push('\\');
                path.push_str(part);
            }
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_comes_before_debugfs() {
        let mounts = "21 1 0:7 / /sys/kernel/debug rw - debugfs nodev rw\n\
                      42 23 0:13 / /mnt/a\\040b rw,relatime shared:1 - tracefs nodev rw\n\
                      43 23 0:14 / /proc rw - proc proc rw\n\
                      damaged\n";
        let found = candidates(mounts);
        assert_eq!(found, [Path::new("/mnt/a b/"), Path::new("/sys/kernel/debug/tracing")]);
        assert!(candidates("").is_empty());
    }

    #[test]
    fn a_backslash_of_its_own_stays() {
        assert_eq!(unescaped(r"/a\q\04\134"), r"/a\q\04\");
    }
}
