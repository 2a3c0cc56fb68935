//! Writing a file so that no reader ever sees a part of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes `text` to a new file beside `path`, and renames it to `path`, replacing an existing file.
///
/// A path that is no plain file (a device, a pipe) is written to directly. A link is kept, and its
/// target is replaced.
///
/// # Errors
///
/// Returns the errors of the file system, with the path in the message. The file at `path` is
/// unchanged then.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    write(path, text.as_bytes())
        .map_err(|cause| io::Error::new(cause.kind(), format!("{}: {cause}", path.display())))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if there.is_file() => rename_over(&fs::canonicalize(path)?, bytes),
        Ok(_) => File::options().write(true).open(path)?.write_all(bytes),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => rename_over(path, bytes),
        Err(cause) => Err(cause),
    }
}

fn rename_over(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path)?;
    let written = fill(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The original error is more informative than one about this file.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Returns a path in the same folder, because files can only be renamed within one file system.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of a file is expected"));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    Ok(path.with_file_name(hidden))
}

fn fill(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    // Otherwise a crash of the machine soon after can leave an empty file under the new name.
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    /// Returns an empty folder for this test.
    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("percid-report-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a new folder");
        folder
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = folder("replaced");
        let path = folder.join("report.html");
        for text in ["first", "second, longer", "3"] {
            replace(&path, text).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("read"), text);
        }
        assert_eq!(names(&folder), ["report.html"]);
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = folder("link");
        let (target, link) = (folder.join("target"), folder.join("link"));
        fs::write(&target, "old").expect("written");
        symlink("target", &link).expect("linked");
        replace(&link, "new").expect("written");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&target).expect("read"), "new");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_device_is_not_replaced() {
        let null = Path::new("/dev/null");
        replace(null, "text").expect("written");
        assert!(fs::metadata(null).expect("there").file_type().is_char_device());
    }

    #[test]
    fn errors_name_the_path_and_leave_nothing_behind() {
        let folder = folder("errors");
        let missing = folder.join("missing").join("report.html");
        let error = replace(&missing, "text").expect_err("no such folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with(&missing.display().to_string()), "{error}");
        let error = replace(&folder, "text").expect_err("a folder");
        assert!(error.to_string().contains(&folder.display().to_string()), "{error}");
        assert!(replace(Path::new(""), "text").is_err());
        assert!(names(&folder).is_empty());
        fs::remove_dir_all(folder).expect("removed");
    }
}
