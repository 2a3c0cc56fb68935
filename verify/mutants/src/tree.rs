//! A copy of the project in which mutants are tried, so that the project itself never has one.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy, and what was built in it.
#[derive(Debug)]
pub struct Tree {
    folder: PathBuf,
}

impl Tree {
    /// Makes `folder/tree` equal to the project at `root`: all files that git tracks or would add.
    /// Equal files are left alone, so that nothing is rebuilt for them.
    ///
    /// # Errors
    ///
    /// Returns errors of git and of the file system.
    pub fn copy_of(root: &Path, folder: &Path) -> io::Result<Tree> {
        let tree = Tree { folder: folder.to_owned() };
        std::fs::create_dir_all(tree.root())?;
        let files = tracked(root)?;
        for file in &files {
            // A file that was deleted without a commit is still in the list.
            let Ok(content) = std::fs::read(root.join(file)) else { continue };
            let copy = tree.root().join(file);
            if std::fs::read(&copy).ok().as_ref() != Some(&content) {
                std::fs::create_dir_all(copy.parent().unwrap_or(&copy))?;
                std::fs::write(&copy, content)?;
            }
            let mode = std::fs::metadata(root.join(file))?.permissions();
            std::fs::set_permissions(&copy, mode)?;
        }
        remove_others(&tree.root(), &tree.root(), &files)?;
        Ok(tree)
    }

    /// Returns the folder of the copy and everything about it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the root of the copy.
    pub fn root(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Returns the build folder; builds with flags have another one.
    pub fn built(&self, flags: bool) -> PathBuf {
        self.folder.join(if flags { "built-with-flags" } else { "built" })
    }

    /// Replaces a text of a file, calls a function, and restores the file. Does not call it if the
    /// text does not occur in the file exactly once: returns the number of occurrences.
    ///
    /// # Errors
    ///
    /// Returns errors of the file system, and those of `run`.
    pub fn with<T>(
        &self,
        (file, before, after): (&str, &str, &str),
        run: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<Result<T, usize>> {
        let path = self.root().join(file);
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Err(0)) };
        let changed = match replace_once(&text, before, after) {
            Ok(changed) => changed,
            Err(times) => return Ok(Err(times)),
        };
        std::fs::write(&path, changed)?;
        let result = run();
        std::fs::write(&path, text)?;
        result.map(Ok)
    }
}

/// Replaces a text that is there once, or returns how often it is there.
pub fn replace_once(text: &str, before: &str, after: &str) -> Result<String, usize> {
    match text.matches(before).count() {
        1 => Ok(text.replacen(before, after, 1)),
        times => Err(times),
    }
}

/// Returns the files of a project, from its root.
fn tracked(root: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listing = Command::new("git").args(arguments).current_dir(root).output()?;
    if !listing.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&listing.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&listing.stdout).into_owned();
    Ok(text.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

/// Removes what the project no longer has.
fn remove_others(root: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            remove_others(root, &path, files)?;
        } else if path.strip_prefix(root).is_ok_and(|file| !files.contains(file))
            && path.file_name().is_some_and(|name| name != "Cargo.lock")
        {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_there_once_is_replaced() {
        assert_eq!(replace_once("one two", "two", "three"), Ok("one three".to_owned()));
        assert_eq!(replace_once("one", "two", "three"), Err(0));
        assert_eq!(replace_once("two two", "two", "three"), Err(2));
    }
}
