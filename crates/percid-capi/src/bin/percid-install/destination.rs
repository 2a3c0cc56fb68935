//! Writing of files that appear together or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The destination of the files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'o> {
    /// The folder that replaces `/`.
    pub(crate) root: Option<&'o Path>,
}

impl<'o> Destination<'o> {
    /// Returns the current location of a path of the installation.
    pub(crate) fn real(self, path: &Path) -> PathBuf {
        let relative = path.strip_prefix("/").unwrap_or(path);
        self.root.map_or_else(|| path.to_owned(), |root| root.join(relative))
    }

    pub(crate) fn begin(self) -> Transaction<'o> {
        Transaction { destination: self, staged: Vec::new(), folders: Vec::new() }
    }
}

/// Files with temporary names, next to their final ones. Dropping it removes them, and the folders
/// that were created for them.
#[derive(Debug)]
pub(crate) struct Transaction<'o> {
    destination: Destination<'o>,
    staged: Vec<PathBuf>,
    /// Created folders, as paths of the installation.
    folders: Vec<PathBuf>,
}

impl Transaction<'_> {
    /// Returns the created folders as paths of the installation, outer ones first.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Creates a folder, and its missing parents, readable by all users.
    pub(crate) fn folder(&mut self, path: &Path) -> Result<(), Failure> {
        let real = self.destination.real(path);
        if real.is_dir() {
            return Ok(());
        }
        match path.parent() {
            // Folders above the root of a package do not belong to the installation.
            Some(parent) if parent != Path::new("/") => self.folder(parent)?,
            _ => fs::create_dir_all(real.parent().unwrap_or(&real))
                .map_err(|error| cannot_write(&real, &error))?,
        }
        let made = fs::DirBuilder::new().mode(0o755).create(&real);
        made.and_then(|()| fs::set_permissions(&real, fs::Permissions::from_mode(0o755)))
            .map_err(|error| cannot_write(&real, &error))?;
        self.folders.push(path.to_owned());
        Ok(())
    }

    /// Writes a file with this mode, independently of the umask.
    pub(crate) fn write(&mut self, path: &Path, content: &[u8], mode: u32) -> Result<(), Failure> {
        self.stage(path, |temporary| {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(temporary)?;
            file.write_all(content)?;
            file.set_permissions(fs::Permissions::from_mode(mode))
        })
    }

    pub(crate) fn link(&mut self, path: &Path, target: &str) -> Result<(), Failure> {
        self.stage(path, |temporary| symlink(target, temporary))
    }

    fn stage(
        &mut self,
        path: &Path,
        make: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), Failure> {
        self.folder(path.parent().unwrap_or(path))?;
        let real = self.destination.real(path);
        if real.is_dir() {
            return Err(format!(
                "cannot write {}: expected a file, it is a folder",
                real.display()
            ));
        }
        let temporary = beside(&real, "new");
        // Remove the file of an earlier run that was killed.
        remove(&temporary).map_err(|error| cannot_write(&real, &error))?;
        self.staged.push(real.clone());
        make(&temporary).map_err(|error| cannot_write(&real, &error))
    }

    /// Renames all files to their final names. Existing files are unlinked, not overwritten:
    /// running programs may have mapped them.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        for (number, path) in self.staged.iter().enumerate() {
            if let Err(error) = replace(path) {
                for path in self.staged[..=number].iter().rev() {
                    restore(path);
                }
                return Err(cannot_write(path, &error));
            }
        }
        for path in std::mem::take(&mut self.staged) {
            let _ = remove(&beside(&path, "old"));
        }
        self.folders.clear();
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        for path in &self.staged {
            let _ = remove(&beside(path, "new"));
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(self.destination.real(folder));
        }
    }
}

/// Replaces a file. The old one, if there is one, keeps a second name until all have been replaced.
fn replace(path: &Path) -> io::Result<()> {
    let old = beside(path, "old");
    remove(&old)?;
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        // File systems without hard links have a moment without the file.
        Ok(_) => fs::hard_link(path, &old).or_else(|_| fs::rename(path, &old))?,
        Err(_) => {}
    }
    fs::rename(beside(path, "new"), path)
}

fn restore(path: &Path) {
    let old = beside(path, "old");
    let _ = match old.symlink_metadata() {
        // If both names refer to one file, the rename does nothing, and the old name is removed
        // next.
        Ok(_) => fs::rename(&old, path).and_then(|()| remove(&old)),
        // The file was new, unless it has not been replaced yet.
        Err(_) if !beside(path, "new").exists() => remove(path),
        Err(_) => Ok(()),
    };
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.percid-install-{what}"))
}

/// Removes a file that may be missing.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    format!("cannot write {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("percid-install-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).expect("a folder");
            Scratch(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("the folder");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn nothing_appears_before_the_commit() {
        let scratch = Scratch::new("appears");
        let mut transaction = Destination { root: Some(&scratch.0) }.begin();
        transaction.write(Path::new("/a/b/file"), b"new", 0o644).expect("writable");
        transaction.link(Path::new("/a/link"), "b/file").expect("writable");
        assert!(!scratch.0.join("a/b/file").exists() && !scratch.0.join("a/link").exists());
        assert_eq!(transaction.folders(), [Path::new("/a"), Path::new("/a/b")]);
        transaction.commit().expect("no obstacle");
        assert_eq!(text(&scratch.0.join("a/link")), "new");
        let mode = fs::metadata(scratch.0.join("a/b/file")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }

    #[test]
    fn what_is_given_up_leaves_nothing() {
        let scratch = Scratch::new("given-up");
        let mut transaction = Destination { root: Some(&scratch.0) }.begin();
        transaction.write(Path::new("/a/b/file"), b"new", 0o644).expect("writable");
        drop(transaction);
        assert!(scratch.names().is_empty());
    }

    /// Another program creates a conflicting folder between the two steps.
    #[test]
    fn a_commit_that_fails_restores_what_was_there() {
        let scratch = Scratch::new("restores");
        let place = |name| scratch.0.join(name);
        fs::write(place("first"), "old").expect("writable");
        symlink("first", place("second")).expect("writable");
        let mut transaction = Destination { root: Some(&scratch.0) }.begin();
        for name in ["/first", "/new", "/third", "/fourth"] {
            transaction.write(Path::new(name), b"new", 0o644).expect("writable");
        }
        transaction.link(Path::new("/second"), "new").expect("writable");
        fs::create_dir(place("fourth")).expect("writable");
        assert!(transaction.commit().expect_err("a folder").contains("fourth"));
        assert_eq!(scratch.names(), ["first", "fourth", "second"]);
        assert_eq!(text(&place("first")), "old");
        assert_eq!(fs::read_link(place("second")).expect("a link"), Path::new("first"));
    }
}
